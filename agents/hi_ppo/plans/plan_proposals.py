"""Groups of domains that a plan policy proposes, and the policies that come with the package."""

from pathlib import Path

import numpy as np
import torch

from agents.decision.whole_plan import ProposeGroups
from agents.hi_ppo.placement.encoder import networks_of
from agents.hi_ppo.plans.plan_policy import PlanPolicy, drawn_trace, groups_of, trace_noise
from agents.hi_ppo.plans.plan_worlds import (
    MOST_PLAN_DOMAINS,
    PlanWorld,
    looked_ahead,
    plan_world,
)
from agents.hi_ppo.plans.simple_proposals import DrawGroups
from agents.hi_ppo.plans.sketch_judge import Groups
from agents.planners.whole.pipelines import MOST_FOR_ALL_ORDERS
from agents.ppo.shipped_weights import shipped_weights, shipped_weights_of
from des import Corrections, Topology, Workload

_KIND = "plans"


_NUM_DRAWN, _LOOK_AHEAD, _NUM_PROPOSED = 64, 256, 8
"""Plans drawn for a search, changes of the best ones that are judged, and plans given to it."""


def proposing_groups(policy: PlanPolicy) -> DrawGroups:
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


def shipped_plan_file(seed: int = 0) -> Path:
    """Return the file of a plan policy that comes with the package.

    Raises
    ------
    ValueError
        If none of that seed is shipped; the message lists those there are.
    """
    return shipped_weights_of(_KIND, seed)


def shipped_plan_files() -> list[Path]:
    """All plan policies that come with the package, by seed."""
    return shipped_weights(_KIND)


def proposing_plans(policy: PlanPolicy, corrections: Corrections) -> ProposeGroups:
    """Propose the best plans of a look-ahead from those of a policy, see `proposing_drawn`."""
    return proposing_drawn(proposing_groups(policy), corrections)


def proposing_drawn(draw: DrawGroups, corrections: Corrections) -> ProposeGroups:
    """Propose the best plans of a look-ahead from those that are drawn, the best first.

    None for networks of which the search judges all orders, or of more than 64 domains.
    """

    def propose(topology: Topology, workload: Workload) -> tuple[Groups, ...]:
        if not MOST_FOR_ALL_ORDERS < topology.num_domains <= MOST_PLAN_DOMAINS:
            return ()
        world = plan_world(topology, topology, workload, corrections)
        rng = np.random.default_rng(0)
        drawn = draw(world, _NUM_DRAWN, rng)
        return tuple(looked_ahead(world, drawn, budget=_LOOK_AHEAD, rng=rng))[:_NUM_PROPOSED]

    return propose
