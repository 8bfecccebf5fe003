"""Least time of a step of each family of plans, in microbatches of one size."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.planners.bounds.alone_limits import AloneLimits
from agents.planners.bounds.domain_sets import DomainSets
from agents.planners.bounds.exchanges import exchange_bounds
from agents.planners.bounds.job_figures import JobFigures
from agents.planners.bounds.linked_sets import LinkedCopies, LinkedSets
from agents.planners.bounds.many_domains import ManyDomains
from agents.planners.bounds.many_groups import ManyGroups
from agents.planners.bounds.whole_layers import WholeLayers

MOST_DOMAINS_IN_SETS = 10
"""Domains all of whose sets are looked at; a bound over more of them is less tight."""

_FEWEST_GROUPS = (2, 3, 4, 5, 6, 8, 11, 16, 24, 36, 52)
_PRECISION, _CHECKED_PRECISION = 5e-4, 1e-3
_LONGEST_S = 1e15
_ROUNDING = 1e-9
_STEP = 0.01


def family_lower_bound_s(
    sets: DomainSets,
    space: PlanSpace,
    family: Family,
    *,
    least_s: float = 0.0,
    most_s: float = np.inf,
    is_checked: bool = True,
) -> float:
    """Bound the step of all plans of a family; ``inf`` where none fits into memory. [s]

    A bound above ``most_s`` comes back as that. ``least_s`` is a bound that is known. Groups of
    domains are checked one by one where ``is_checked``: that is tighter and takes longer.
    """
    job = sets.figures
    size, least_s = len(job.memory_bytes), max(least_s, job.work_s)
    if family == "single":
        return _single_s(job)
    if size == 1 or (size == 2 and family == "hybrid"):
        return np.inf
    if family == "pipeline":
        return _least_s([_holds_pipeline(sets)], least_s, most_s)
    if job.num_microbatches == 1:
        return np.inf
    if family != "hybrid":
        most_s = _least_s(_holds_replicas(job, space, family), least_s, most_s)
    if family == "replicas" or size == 2:
        return most_s
    precision = _CHECKED_PRECISION if is_checked else _PRECISION
    return _least_s(_holds_groups(sets, space, family, is_checked), least_s, most_s, precision)


def is_looked_at(sets: DomainSets, family: Family) -> bool:
    """Whether a bound of a family is tighter where its groups are checked one by one."""
    size = len(sets.figures.memory_bytes)
    return family not in ("single", "pipeline", "replicas") and 2 < size <= MOST_DOMAINS_IN_SETS


def _single_s(job: JobFigures) -> float:
    """Step in the best domain with room for the model. [s]"""
    step_s = job.num_microbatches * job.model_s + job.overhead_s + job.update_s.sum(axis=1)
    step_s = np.where(job.most_layers >= len(job.layer_bytes), step_s, np.inf)
    return float(step_s.min()) * (1.0 - _ROUNDING)


def _holds_pipeline(sets: DomainSets) -> Callable[[float], bool]:
    """Return whether a pipeline over several domains may do a step by a time."""
    if len(sets.figures.memory_bytes) > MOST_DOMAINS_IN_SETS:
        return ManyDomains(figures=sets.figures).hold_pipeline
    holds, layers = sets.pipelines(), WholeLayers(figures=sets.figures)
    return lambda time_s: holds(time_s) and layers.hold_pipeline(time_s)


def _holds_replicas(
    job: JobFigures, space: PlanSpace, family: Family
) -> Iterator[Callable[[float], bool]]:
    """Return whether some numbers of whole copies may do a step by a time, for all numbers."""
    sets = LinkedSets.of(job)
    many = LinkedCopies.of_many(job, exchange_bounds(job, space, family, 3, 3)[0], sets)
    yield many.hold_many
    two = LinkedCopies.of_two(job, exchange_bounds(job, space, family, 2, 2)[0], sets)
    yield two.hold_two
    rate = job.rate_bytes_per_s.max(axis=1)
    for count in range(2, len(job.memory_bytes) + 1):
        for exchange in exchange_bounds(job, space, family, count, count)[1:]:
            limits = AloneLimits.of(job, exchange, rate)
            yield partial(_hold_alone, job, limits, count)


def _hold_alone(job: JobFigures, limits: AloneLimits, count: int, time_s: float) -> bool:
    """Whether a number of whole copies may do a step by a time."""
    most = np.sort(limits.counts(job, time_s))[-count:]
    return bool(most[0] >= 1.0 and most.sum() >= job.num_microbatches)


def _holds_groups(
    sets: DomainSets, space: PlanSpace, family: Family, is_checked: bool
) -> Iterator[Callable[[float], bool]]:
    """Return whether some numbers of groups may do a step by a time, for all numbers.

    One group has several domains. The most groups come first: they are bound least.
    """
    job, size = sets.figures, len(sets.figures.memory_bytes)
    if size <= MOST_DOMAINS_IN_SETS:
        for count in reversed(range(2, min(size, 5))):
            most = count if count < 4 else size - 1
            for exchange in exchange_bounds(job, space, family, count, most):
                yield sets.groups(exchange, is_checked=is_checked)
        return
    domains = ManyDomains(figures=job)
    fewest = [count for count in _FEWEST_GROUPS if count < size]
    for count, following in pairwise([*fewest, size]):
        for exchange in exchange_bounds(job, space, family, count, following - 1):
            groups = ManyGroups(domains=domains, exchange=exchange, most_groups=following - 1)
            yield groups.hold


def _least_s(
    tests: Iterable[Callable[[float], bool]],
    least_s: float,
    most_s: float,
    precision: float = _PRECISION,
) -> float:
    """Largest time known to be too short for all tests, at most ``most_s``. [s]"""
    for holds in tests:
        most_s = _least_of_one_s(holds, least_s, most_s, precision)
    return most_s


def _least_of_one_s(
    holds: Callable[[float], bool], least_s: float, most_s: float, precision: float
) -> float:
    """Largest time known to be too short, by halves; ``inf`` where no time is enough. [s]"""
    if most_s < np.inf and not holds(most_s):
        return most_s
    if most_s == np.inf and not holds(_LONGEST_S):
        return np.inf
    low_s, high_s = least_s * (1.0 - _ROUNDING), least_s * (1.0 + _STEP)
    while high_s < most_s and not holds(high_s):
        low_s, high_s = high_s, high_s + 2.0 * (high_s - least_s)
    high_s = min(high_s, most_s)
    while high_s - low_s > precision * low_s:
        middle_s = 0.5 * (low_s + high_s)
        low_s, high_s = (low_s, middle_s) if holds(middle_s) else (middle_s, high_s)
    return low_s
