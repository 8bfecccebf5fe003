"""Doubt of an answer: what a fresh search answers where figures are off, or a part is lost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Self

import numpy as np

from agents.decision.bound_plan import BoundPlan
from agents.judge.step_times import mean_step
from agents.search.bound_rows import BoundRow
from agents.search.bound_search import BoundFound, search_bound
from agents.search.chains import MOST_ENUMERATED
from agents.search.known_pipelines import NearBest
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.search.shared_parts import SharedParts
from des import Corrections, Topology, lower
from des.compiled.simulate import makespan_compiled_s
from des.dynamics import STEADY
from des.plan.synchronisation import agree_every_step
from des.schedules import asks_times
from des.world.lost_parts import without_domain, without_links

OFF_FACTORS = (0.8, 1.25)
"""Factors on bandwidths and on times of layers that the answer is tried at."""

_LOST = 1.25
"""Steps without a part beyond this multiple of the answer's are searched for among all plans."""

_NUM_COURSES = 32
"""Courses of the links that are drawn where a law moves them."""


@dataclass(frozen=True, kw_only=True)
class OtherCase:
    """The job where one thing is otherwise: what a fresh search answers, and the plan chosen.

    Attributes
    ----------
    row
        Best plan of the search, of which the plan chosen is a candidate; None where nothing fits.
    present_s
        Time of a step of the plan chosen; None where it cannot run. [s]
    misfit
        Reason why nothing fits, or else why the plan chosen cannot run; empty where its site is
        lost.
    """

    title: str
    row: BoundRow | None
    present_s: float | None
    misfit: str = ""

    @property
    def loss(self) -> float | None:
        """Share by which a step of the plan chosen is longer than that of the best plan there."""
        if self.row is None or self.present_s is None:
            return None
        return max(0.0, self.present_s / self.row.figures.step_s - 1.0)

    @property
    def keeps_plan(self) -> bool:
        """Whether no plan found is quicker than the one chosen."""
        return self.loss == 0.0


@dataclass(frozen=True, kw_only=True)
class CourseSpread:
    """Times of a step over drawn courses of the links. [s]"""

    median_s: float
    p95_s: float
    num_courses: int

    @classmethod
    def of(cls, steps_s: Sequence[float]) -> Self:
        """Return the median and the 95th percentile, by linear interpolation."""
        median_s, p95_s = np.percentile(steps_s, (50.0, 95.0))
        return cls(median_s=float(median_s), p95_s=float(p95_s), num_courses=len(steps_s))


@dataclass(frozen=True, kw_only=True)
class Sureness:
    """Knowledge of an answer beside its time.

    Attributes
    ----------
    least_s, most_s
        Times of a step of the plan with all bandwidths and times of layers off by `OFF_FACTORS`,
        the better way round and the worse. [s]
    spread
        Over courses of the world's law; None where links stand still.
    """

    cases: tuple[OtherCase, ...]
    least_s: float
    most_s: float
    spread: CourseSpread | None = None


def sureness_of(
    request: PlanRequest,
    objective: PlanObjective,
    best: BoundRow,
    shared: SharedParts | None = None,
    near: NearBest | None = None,
) -> Sureness:
    """Search again with figures off and with each site and link in use lost.

    Parameters
    ----------
    shared
        Parts that the search of the answer has worked out, see `search_bound`.
    near
        What is known of plans near the best, whose times bound what is looked at; None: nothing.
        Where there are many sites its settings are tried first: with figures off alone, and
        otherwise where the step that they lead to is still near.

    Raises
    ------
    ValueError
        If the plan cannot run with its figures off, which a plan that fits can.
    """
    bound, shared = best.bound, shared or SharedParts()
    corners = [
        _present_s(bound, request.topology, _off(request.corrections, bandwidth, layers))
        for bandwidth, layers in product(OFF_FACTORS, OFF_FACTORS)
    ]
    search = partial(search_bound, objective=objective, shared=shared, is_best_alone=True)
    return Sureness(
        cases=tuple(
            _case(title, asked, best, search, near)
            for title, asked in other_requests(request, best)
        ),
        least_s=min(corners),
        most_s=max(corners),
        spread=_spread(request, bound),
    )


def other_requests(request: PlanRequest, best: BoundRow) -> Iterator[tuple[str, PlanRequest]]:
    """Return the request with one thing otherwise, and what that is."""
    topology, corrections = request.topology, request.corrections
    for factor in OFF_FACTORS if topology.links else ():
        off = _off(corrections, factor, 1.0)
        yield f"bandwidths x {factor:g}", replace(request, corrections=off)
    for factor in OFF_FACTORS:
        off = _off(corrections, 1.0, factor)
        yield f"times of layers x {factor:g}", replace(request, corrections=off)
    for site in sorted(best.candidate.sites) if topology.num_domains > 1 else ():
        name = topology.domains[site].name
        yield f"without {name}", replace(request, topology=without_domain(topology, name))
    for source, target in _ways_in_use(topology, best):
        cut = without_links(topology, source, target)
        yield f"without {source}-{target}", replace(request, topology=cut)


def _off(corrections: Corrections, bandwidth: float, layers: float) -> Corrections:
    """Corrections with factors on all bandwidths between sites and on all times of layers."""
    return replace(
        corrections,
        wan_bandwidth_factor=corrections.wan_bandwidth_factor * bandwidth,
        compute_time_factor=corrections.compute_time_factor * layers,
    )


def _ways_in_use(topology: Topology, best: BoundRow) -> list[tuple[str, str]]:
    """Pairs of domains over whose links the plan sends, each once."""
    busy = {tuple(name.split("->")) for name, busy_s in best.busy_s.items() if busy_s > 0.0}
    ends = {(one.source, one.target) for one in topology.links} & busy
    place = topology.index_of
    pairs = {(a, b) if place[a] < place[b] else (b, a) for a, b in ends}
    return sorted(pairs, key=lambda pair: (place[pair[0]], place[pair[1]]))


def _case(
    title: str,
    asked: PlanRequest,
    best: BoundRow,
    search: Callable[..., BoundFound],
    near: NearBest | None,
) -> OtherCase:
    """Search again; the plan chosen is a candidate where all its sites are there."""
    bound, present_s, misfit, reason = best.bound, None, "", ""
    is_there = asked.topology.num_domains == bound.topology.num_domains
    present = bound if is_there else None
    row = kept = None
    try:
        search = partial(search, in_force=present)
        found = _warm(search, asked, best, near) or search(asked)
        row, kept = found.best, found.in_force
    except ValueError as error:
        misfit = str(error)
    if kept is not None:
        present_s = kept.figures.step_s
    elif is_there:
        try:
            replace(bound, topology=asked.topology, corrections=asked.corrections)  # refuses it
            present_s = _present_s(bound, asked.topology, asked.corrections)
        except ValueError as error:
            reason = str(error)
    return OtherCase(title=title, row=row, present_s=present_s, misfit=misfit or reason)


def _warm(
    search: Callable[..., BoundFound],
    asked: PlanRequest,
    best: BoundRow,
    near: NearBest | None,
) -> BoundFound | None:
    """Search knowing what is near the best; None where all is to be searched as by itself.

    Of many sites among near settings, unless others may be better, as all or much is lost: no plan
    that is left takes less than with the part, so what lay far from the best is no quicker.
    """
    if near is None:
        return None
    bound, sites = best.bound, best.candidate.sites
    search = partial(search, near=near)
    if asked.topology.num_domains <= MOST_ENUMERATED:
        return search(asked)
    names = [one.name for one in asked.topology.domains]
    if not any(bound.topology.domains[site].name in names for site in sites):
        return None
    try:
        found = search(replace(asked, settings=near.settings))
    except ValueError:
        return None
    is_lost = asked.topology is not bound.topology
    return None if is_lost and found.best.figures.step_s > _LOST * bound.step_s else found


def _present_s(bound: BoundPlan, topology: Topology, corrections: Corrections) -> float:
    if not agree_every_step(bound.plan.synchronisation):
        return mean_step(topology, bound.workload, bound.plan, corrections)[0]
    program = lower(topology, bound.workload, bound.plan, corrections)
    return makespan_compiled_s(topology, program, corrections)


def _spread(request: PlanRequest, bound: BoundPlan) -> CourseSpread | None:
    """Steps of the plan at the start of drawn courses of the links, seeds from 0 on.

    None too where copies exchange every some steps while links move: a mean step has no one course.
    """
    topology = request.topology
    if topology.dynamics == STEADY or not topology.links:
        return None
    courses = [topology.epoch_of(seed) for seed in range(_NUM_COURSES)]
    corrections = request.corrections
    agrees = agree_every_step(bound.plan.synchronisation)
    if not agrees and any(one.movement is not None for one in courses):
        return None
    if bound.plan.replicas or asks_times(bound.plan.schedule):
        return CourseSpread.of([_present_s(bound, one, corrections) for one in courses])
    program = lower(topology, bound.workload, bound.plan, corrections)  # whatever links stand at
    return CourseSpread.of([makespan_compiled_s(one, program, corrections) for one in courses])
