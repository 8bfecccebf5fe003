"""Trained policies as methods: all that they propose for a preference, before anything has run."""

from collections.abc import Sequence
from pathlib import Path

from agents.epochs import Preference, Situation
from agents.hi_ppo.policies import Policies
from agents.hi_ppo.proposals import Proposer
from agents.task import Replacement
from des import Plan, Topology, Workload
from scenarios.pareto.fronts import Propose

NUM_PLANS = NUM_SAMPLES = 64
"""Plans that are taken for each preference, and orders that are drawn for it."""

_EPOCH_S = 1200.0
_ITERATIONS = 10


def first_situation(topology: Topology, workload: Workload, preference: Preference) -> Situation:
    """Return the first decision on links that stand still: no plan is in force, a move is free."""
    return Situation(
        topology=topology,
        base=topology,
        workload=workload,
        epoch=0,
        epoch_s=_EPOCH_S,
        iterations_per_epoch=_ITERATIONS,
        replacement=Replacement(),
        preference=preference,
    )


def proposing(
    proposer: Proposer, *, num_plans: int = NUM_PLANS, num_samples: int = NUM_SAMPLES
) -> Propose:
    """Propose all plans that policies have for a preference, the best first."""

    def propose(topology: Topology, workload: Workload, preference: Preference) -> Sequence[Plan]:
        situation = first_situation(topology, workload, preference)
        return proposer.propose(situation, num_samples=num_samples, num_plans=num_plans).plans

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
