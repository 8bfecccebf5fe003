"""Groups of domains that a plan policy proposes, and the policies that come with the package."""

from pathlib import Path

import numpy as np
import torch

from agents.hi_ppo.placement.encoder import networks_of
from agents.hi_ppo.plans.plan_policy import PlanPolicy, drawn_trace, groups_of, trace_noise
from agents.hi_ppo.plans.plan_worlds import PlanWorld
from agents.hi_ppo.plans.simple_proposals import ProposeGroups
from agents.hi_ppo.plans.sketch_judge import Groups

_FOLDER = Path(__file__).resolve().parents[2] / "checkpoints"
_STEM = "plans-"


def proposing_groups(policy: PlanPolicy) -> ProposeGroups:
    """Propose what a policy finds likeliest first, then draws of it."""

    @torch.no_grad()
    def propose(world: PlanWorld, count: int, rng: np.random.Generator) -> tuple[Groups, ...]:
        size = world.num_domains
        _, scores = policy(networks_of([world.features]))
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        trace = drawn_trace(
            scores.of(0, size),
            world.features.facts,
            trace_noise(count, size, generator, num_greedy=1),
            world.most_stages,
            world.most_groups,
        )
        return tuple(groups_of(tokens, size) for tokens in trace.tokens)

    return propose


def shipped_plan_files() -> list[Path]:
    """All plan policies that come with the package, by seed."""
    return sorted(_FOLDER.glob(f"{_STEM}*.pt"))
