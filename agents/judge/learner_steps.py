"""Mean steps of plans whose learners have clocks of their own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from des import Corrections, DecoupledDiLoCo, Plan, Topology, Workload
from des.compiled.many.simulation import exchanges_behind_s, simulate_many
from des.plan.learners import Learners, learners_of, outer_steps

MEASURED_PERIODS = 8
"""Periods of the slowest learner over which means are taken, behind a first one."""


class LearnerPaces(NamedTuple):
    """Time of a mean step, in which all learners together see the tokens of a step of each. [s]

    ``learner_steps`` are steps that each does in it, and ``num_merges`` outer steps.
    """

    step_s: float
    learner_steps: tuple[float, ...]
    num_merges: float


def merging(plan: Plan) -> Plan:
    """The plan with the exchange of an outer step after the steps: it has links to itself."""
    mode = plan.synchronisation
    assert isinstance(mode, DecoupledDiLoCo)
    return replace(plan, synchronisation=replace(mode, overlap_steps=1))


def learner_paces(
    topologies: Sequence[Topology], workload: Workload, plan: Plan, corrections: Corrections
) -> list[LearnerPaces]:
    """Mean steps of a plan with `has_own_clocks`, on networks that stand still.

    A learner's step is that of its program alone, a merge that of the exchange alone.

    Raises
    ------
    ValueError
        If links move, or the plan does not match a topology or the workload.
    """
    if any(topology.movement is not None for topology in topologies):
        raise ValueError("step times: topology must stand still; give topology.at_start()")
    mode, alone = plan.synchronisation, learners_of(workload, plan)
    assert isinstance(mode, DecoupledDiLoCo)
    own_s = [
        simulate_many(topologies, own, [one], corrections)[:, 0].tolist() for own, one in alone
    ]
    found, step = [], mode.steps_between - 1
    for topology, *steps_s in zip(topologies, *own_s, strict=True):
        merge_s = exchanges_behind_s(topology, workload, [merging(plan)], [step], corrections)
        learners = Learners(
            mode=mode,
            step_s=tuple(steps_s),
            tokens=tuple(own.tokens_per_iteration for own, _ in alone),
            merge_s=float(merge_s[0]),
        )
        found.append(_paces(learners))
    return found


def _paces(learners: Learners) -> LearnerPaces:
    steps = outer_steps(learners, 1 + MEASURED_PERIODS)
    own_s = learners.own_steps_s(steps)
    step_s = learners.mean_step_s(own_s)
    merged_s = (steps[-1].begin_s - steps[0].begin_s) / (len(steps) - 1)
    return LearnerPaces(step_s, tuple(step_s / one_s for one_s in own_s), step_s / merged_s)
