"""Proven lower bound on the time of a step over all plans of a space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.decision.whole_plan import WholeProblem
from agents.planners.bounds.domain_sets import DomainSets
from agents.planners.bounds.family_bounds import family_lower_bound_s, is_looked_at
from agents.planners.bounds.job_figures import JobFigures
from des.schedules import schedule_named
from des.world.transport import PLAIN

Binding = Literal["work", "fill", "memory", "bytes"]
"""Reason why a step is not as quick as all domains at work from its begin to its end: none; a
pipeline that fills, and layers and microbatches that are whole; memory; messages."""

_LITTLE = 0.01

_MOST_TIGHTENED = 1.25
"""A bound is raised by this factor at most where groups are checked one by one."""


@dataclass(frozen=True, kw_only=True)
class StepBound:
    """Time that no plan of a space has a shorter step than.

    Attributes
    ----------
    step_s
        Of all families; ``inf`` where none of them fits into the memory. [s]
    family_s
        Of each family allowed; ``inf`` where none of its plans fits or exists. [s]
    work_s
        Step with all domains at work from its begin to its end: a bound that is never larger. [s]
    binds
        What adds most to the work.
    """

    step_s: float
    family_s: Mapping[Family, float]
    work_s: float
    binds: Binding


def step_lower_bound_s(problem: WholeProblem) -> StepBound:
    """Bound the mean time of a step of every plan of a space. [s]

    Plans give a domain one stage at most, without parallelism inside, and hold at least one
    microbatch a stage; shares of replicas are any whole numbers. docs/dev/bounds.md has the proof.

    Raises
    ------
    ValueError
        If the space or the network is one that the proof does not cover.
    """
    jobs = _jobs(problem)
    found = _bounds(jobs, problem.space, are_all=True)
    step_s, job, best = found[0]
    return StepBound(
        step_s=step_s,
        family_s=MappingProxyType(
            {
                each: min(own_s for own_s, _, family in found if family == each)
                for each in problem.space.families
            }
        ),
        work_s=min(each.figures.work_s for each in jobs),
        binds=_binding(job.figures, problem.space, best, step_s),
    )


def least_bound_s(problem: WholeProblem) -> float:
    """Lower bound of the mean time of a step over all plans of a space, without its families. [s]

    Quicker than `step_lower_bound_s`, and equal to its ``step_s`` within the precision: families
    and sizes of microbatches that cannot lower the bound are dropped.

    Raises
    ------
    ValueError
        As `step_lower_bound_s`.
    """
    return _bounds(_jobs(problem), problem.space, are_all=False)[0][0]


def _jobs(problem: WholeProblem) -> list[DomainSets]:
    """Return the sets of domains for each size of microbatches."""
    _check(problem)
    return [DomainSets(figures=JobFigures.of(problem, workload)) for workload in problem.workloads]


def _bounds(
    jobs: Sequence[DomainSets], space: PlanSpace, *, are_all: bool
) -> list[tuple[float, DomainSets, Family]]:
    """Bounds of families in each size of microbatches, the least first. [s]

    That one, and all that were the least before, are as tight as can be. Unless ``are_all``, those
    of other families are no more than the least.
    """
    found, least_s = [], np.inf
    for family in space.families:
        least_s = np.inf if are_all else least_s
        for job in jobs:
            own_s = family_lower_bound_s(job, space, family, most_s=least_s, is_checked=False)
            least_s = min(least_s, own_s)
            found.append((own_s, job, family))
    is_tight = {(id(job), family): not is_looked_at(job, family) for _, job, family in found}
    while True:
        found.sort(key=lambda each: each[0])
        least_s, job, family = found[0]
        if is_tight[id(job), family] or least_s == np.inf:
            return found
        is_tight[id(job), family] = True
        most_s = least_s * _MOST_TIGHTENED
        own_s = family_lower_bound_s(job, space, family, least_s=least_s, most_s=most_s)
        found[0] = own_s, job, family


def _check(problem: WholeProblem) -> None:
    """Refuse what the proof does not cover."""
    topology, space = problem.topology, problem.space
    if topology.transport != PLAIN:
        raise ValueError(
            "bound: transport must be plain (fifo, overlapped endpoints, no window), "
            f"got {topology.transport!r}"
        )
    for name in space.schedules:
        if schedule_named(name)[0] is schedule_named("interleaved_1f1b")[0]:
            raise ValueError(
                "bound: schedules must have a single stage in each domain, got interleaved_1f1b, "
                "whose domains come back"
            )
    if {"diloco", "streaming_diloco"} & set(space.families) and space.period_steps < 2:
        raise ValueError(
            "bound: period_steps must be at least 2 where families have diloco or "
            f"streaming_diloco, got {space.period_steps}"
        )


def _binding(job: JobFigures, space: PlanSpace, family: Family, step_s: float) -> Binding:
    """Find what adds most to the work: looked for without bytes, then without memory limits too."""
    if step_s <= job.work_s * (1.0 + _LITTLE):
        return "work"
    if step_s == np.inf:
        return "memory"
    free = job.without_bytes()
    free_s = _without(free, space, family, step_s)
    roomy_s = _without(free.without_memory(), space, family, free_s)
    added: dict[Binding, float] = {
        "bytes": step_s - free_s,
        "memory": free_s - roomy_s,
        "fill": roomy_s - job.work_s,
    }
    return max(added, key=lambda one: added[one])


def _without(job: JobFigures, space: PlanSpace, family: Family, most_s: float) -> float:
    """Bound a family without something, at most a time; groups are not checked one by one. [s]"""
    sets = DomainSets(figures=job)
    return family_lower_bound_s(sets, space, family, most_s=most_s, is_checked=False)
