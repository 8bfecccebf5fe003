"""Search of bound plans: the best of each kind, simulated as the trainer runs it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agents.decision.bound_plan import BoundPlan
from agents.search.candidates import Candidate, PipelineSites
from agents.search.chains import Chain
from agents.search.desk import SearchDesk
from agents.search.misfits import least_shortfall
from agents.search.objective import ComparedFigures, PlanObjective
from agents.search.search import PlanRequest, bound_settings, candidates_of
from agents.search.settings import INTERLEAVED
from des import InfeasiblePlacementError, Plan, Workload
from des.compiled.simulate import simulate_compiled
from des.costs.memory import DomainMemory
from des.plan.synchronisation import agree_every_step
from des.views.prices import cost_of, has_prices

PlanKind = Literal["single", "pipeline", "replicas", "hybrid"]
"""One site, a pipeline of several, copies on a site each, copies of pipelines."""

KIND_TITLES: dict[PlanKind, str] = {
    "single": "single domain",
    "pipeline": "pipeline",
    "replicas": "replicas",
    "hybrid": "replicas of pipelines",
}
"""Names of the kinds for people."""

_MOST_POLISHED = 2
"""Candidates of a kind whose layers are moved by times of whole iterations."""

_MOST_EXACT = 8
"""Candidates of a kind that are simulated as whole plans."""

_ROUNDING = 1e-9
"""Share by which times that are equal but for rounding may differ."""


@dataclass(frozen=True, kw_only=True)
class BoundRow:
    """A bound plan with the figures that plans are compared by.

    ``busy_s`` is the time for which each site computes, on its busiest device, and each link
    (``East->West``) sends. [s]
    """

    bound: BoundPlan
    candidate: Candidate | PipelineSites
    figures: ComparedFigures
    memory: tuple[DomainMemory, ...]
    busy_s: dict[str, float]

    @property
    def kind(self) -> PlanKind:
        """Kind of the plan."""
        return _kind_of(self.candidate.chains)


def _kind_of(chains: Sequence[Chain]) -> PlanKind:
    """Kind of a plan by the sites of each of its pipelines."""
    if len(chains) == 1:
        return "single" if len(chains[0]) == 1 else "pipeline"
    return "replicas" if all(len(chain) == 1 for chain in chains) else "hybrid"


@dataclass(frozen=True, kw_only=True)
class BoundFound:
    """Result of a search: the best row first, then the best of every other kind."""

    rows: tuple[BoundRow, ...]
    num_judged: int

    @property
    def best(self) -> BoundRow:
        """The best plan."""
        return self.rows[0]


def search_bound(
    request: PlanRequest,
    objective: PlanObjective | None = None,
    *,
    in_force: BoundPlan | None = None,
) -> BoundFound:
    """Search the plans that a trainer can run, and rank them.

    Parameters
    ----------
    in_force
        A plan of the job that is ranked with those that are found, if it can run.

    Raises
    ------
    InfeasiblePlacementError
        If none fits, naming the least memory that is missing on a GPU.
    ValueError
        If none keeps the limits of the objective, or a cost is asked for without prices.
    """
    aim = objective or PlanObjective()
    desk = SearchDesk(topology=request.topology, job=request.job, corrections=request.corrections)
    found = candidates_of(request, desk, by_sites=not aim.is_time_alone)
    refusals: list[str] = []
    is_time_alone = aim.is_time_alone and aim.most_s == math.inf
    rows = [
        row
        for group in found.groups
        for row in _exact_rows(request, desk, group, refusals, is_time_alone=is_time_alone)
    ]
    if in_force is not None:
        rows += _row_in_force(request, in_force)
    if not rows:
        settings = list(bound_settings(request, fits=False))
        said = refusals[0] if refusals else least_shortfall(desk, settings, request.trainer.name)
        raise InfeasiblePlacementError(said)
    allowed = [row for row in rows if aim.allows(row.figures)]
    if not allowed:
        quickest = min(row.figures.step_s for row in rows)
        cheapest = min((row.figures.usd for row in rows if row.figures.usd is not None), default=0)
        raise ValueError(
            f"at_most: must be at least {quickest:.4g} s, the quickest step, and {cheapest:.4g} "
            "USD, the cheapest one; no plan found keeps it"
        )
    order = aim.ranking([row.figures for row in allowed])
    best_of: dict[PlanKind, BoundRow] = {}
    for position in order:
        best_of.setdefault(allowed[position].kind, allowed[position])
    return BoundFound(rows=tuple(best_of.values()), num_judged=found.num_judged)


def _exact_rows(
    request: PlanRequest,
    desk: SearchDesk,
    candidates: Sequence[Candidate],
    refusals: list[str],
    *,
    is_time_alone: bool,
) -> list[BoundRow]:
    """Rows of the best candidates that the trainer runs and that fit; notes why others do not.

    Where time alone counts, those that are estimated to take longer than a row are left out.
    """
    rows: list[BoundRow] = []
    candidates = list({_key_of(one): one for one in reversed(candidates)}.values())[::-1]
    polished = [
        desk.polished(one) if at < _MOST_POLISHED else one for at, one in enumerate(candidates)
    ]
    quickest_s: dict[PlanKind, float] = {}
    for at in sorted(range(len(candidates)), key=lambda at: polished[at].estimate_s):
        if len(rows) == _MOST_EXACT:
            break
        kind = _kind_of(candidates[at].chains)
        limit_s = quickest_s.get(kind, math.inf) * (1.0 + _ROUNDING)
        if is_time_alone and polished[at].estimate_s > limit_s:
            continue
        for one in dict.fromkeys((polished[at], candidates[at])):
            row = row_of_candidate(request, one)
            if isinstance(row, BoundRow):
                rows.append(row)
                quickest_s[kind] = min(row.figures.step_s, quickest_s.get(kind, math.inf))
                break
            refusals.append(row)
    return rows


def _key_of(candidate: Candidate) -> tuple[object, ...]:
    """All of a candidate that tells its plan; a pipeline of one stage is alike in any order."""
    setting = candidate.setting
    order = (setting.schedule, setting.group_factor) if candidate.num_workers > 1 else ()
    sizes = setting.degrees, setting.microbatch_size, setting.recomputation
    return *sizes, order, candidate.chains, candidate.splits, candidate.stage_layers


def row_of_candidate(request: PlanRequest, candidate: Candidate) -> BoundRow | str:
    """Simulate a candidate as a whole plan; the reason where the trainer or memory refuses it."""
    workload = candidate.setting.workload(request.job)
    return _row(request, candidate, workload, candidate.plan(request.topology))


def _row_in_force(request: PlanRequest, in_force: BoundPlan) -> list[BoundRow]:
    """Row of the plan in force, if the trainer runs it as it is asked for and it fits.

    One whose copies seldom exchange has no time of a step alone, and is none.
    """
    plan = in_force.plan
    if not agree_every_step(plan.synchronisation):
        return []
    names = request.schedules or (plan.schedule,)
    if not any(
        plan.schedule.startswith(name) if name == INTERLEAVED else plan.schedule == name
        for name in names
    ):
        return []
    row = _row(request, PipelineSites.of_plan(plan), in_force.workload, plan)
    return [row] if isinstance(row, BoundRow) else []


def _row(
    request: PlanRequest, candidate: Candidate | PipelineSites, workload: Workload, plan: Plan
) -> BoundRow | str:
    """Simulate a plan; the reason where the trainer or memory refuses it."""
    topology = request.topology
    try:
        result = simulate_compiled(topology, workload, plan, request.corrections, is_recorded=False)
        bound = BoundPlan(
            topology=topology,
            workload=workload,
            plan=plan,
            trainer=request.trainer.name,
            step_s=result.makespan_s,
            corrections=request.corrections,
        )
    except ValueError as error:
        return str(error)
    used = [domain for at, domain in enumerate(topology.domains) if at in candidate.sites]
    peak = sum(domain.peak_flops_per_s for domain in used)
    busy_s: dict[str, float] = {}
    devices: dict[tuple[str, int], float] = {}
    for stage in result.stages:
        key = stage.domain, stage.device
        devices[key] = devices.get(key, 0.0) + stage.busy_s
    for (name, _), own_s in devices.items():
        busy_s[name] = max(busy_s.get(name, 0.0), own_s)
    for link in result.links:
        busy_s[f"{link.source}->{link.target}"] = link.busy_s
    return BoundRow(
        bound=bound,
        candidate=candidate,
        figures=ComparedFigures(
            step_s=result.makespan_s,
            utilisation=workload.flops_per_iteration / (peak * result.makespan_s),
            wan_bytes=result.communication_cost_bytes,
            memory_fraction=max(one.required_bytes / one.capacity_bytes for one in result.memory),
            num_sites=len(used),
            usd=cost_of(result, topology).total_usd if has_prices(topology) else None,
        ),
        memory=result.memory,
        busy_s=busy_s,
    )
