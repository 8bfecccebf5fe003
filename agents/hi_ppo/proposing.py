"""Trained policies as methods: all that they propose for a preference, before anything has run."""

from collections.abc import Sequence
from pathlib import Path

from agents.decision.situation import Preference, Situation
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies
from agents.judge.look_ahead import LookAhead
from agents.planners.pareto.proposals import Propose
from des import Plan, Topology, Workload
from des.plan.replacement import Replacement

SWEEP = LookAhead(
    budget=8000, width=8, num_refined=64, order_fraction=0.3, most_behind=0.2, num_samples=64
)
"""Look-ahead for each preference."""

NUM_PLANS = 64
"""Plans that are taken for each preference."""

_NUM_SEEDS = 1_000_000
"""Steps of the weight of utilisation from 0 to 1; nearer weights have equal draws."""


def first_situation(
    topology: Topology, workload: Workload, preference: Preference, *, epoch_s: float = 1200.0
) -> Situation:
    """Return the first decision on links that stand still: no plan is in force, a move is free."""
    return Situation(
        topology=topology,
        base=topology,
        workload=workload,
        epoch=0,
        epoch_s=epoch_s,
        replacement=Replacement(),
        preference=preference,
    )


def proposing(proposer: Proposer) -> Propose:
    """Propose all plans that a proposer has for a preference, the best first.

    Time and utilisation of all GPUs weigh the same plans, so preferences that differ by those two
    alone ask the same question. They get draws of their own, by the weight of utilisation: what a
    sweep asks twice is looked for twice.
    """

    def propose(topology: Topology, workload: Workload, preference: Preference) -> Sequence[Plan]:
        situation = first_situation(topology, workload, preference)
        seed = round(_NUM_SEEDS * preference.utilisation)
        found = proposer.propose(situation, look_ahead=SWEEP, num_plans=NUM_PLANS, seed=seed)
        return found.plans

    return propose


def policies_of(paths: Sequence[Path]) -> dict[str, Propose]:
    """Read checkpoints; returns what each proposes, by the name of the file.

    Raises
    ------
    ValueError
        If a file is no checkpoint of such policies, or two have the same name.
    """
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        raise ValueError(f"checkpoints must have names of their own, each once; got {names}")
    return {path.stem: proposing(Proposer(Policies.load(path).placement)) for path in paths}
