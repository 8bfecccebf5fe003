"""Bound plans with the figures that a search compares: simulated as the trainer runs them."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.decision.bound_plan import BoundPlan
from agents.decision.families import Family
from agents.decision.token_prices import (
    UNCHANGED,
    TokenPrice,
    beyond_published,
    price_of,
)
from agents.decision.whole_plan import JudgedPlan
from agents.judge.mean_use import mean_use, step_usd
from agents.judge.step_times import mean_step
from agents.search.candidates import Candidate, PipelineSites
from agents.search.chains import Chain
from agents.search.copy_sets import CopySet
from agents.search.objective import ComparedFigures
from agents.search.schedule_choice import INTERLEAVED
from agents.search.search import PlanRequest
from agents.trainers.plan_checks import check_plan
from des import DecoupledDiLoCo, Plan, Workload, check_memory
from des.compiled.simulate import simulate_compiled
from des.costs.memory import DomainMemory
from des.plan.synchronisation import Synchronisation, agree_every_step
from des.views.prices import cost_of, keep_counted_prices

KIND_TITLES: dict[Family, str] = {
    "single": "single domain",
    "pipeline": "pipeline",
    "replicas": "replicas",
    "hybrid": "replicas of pipelines",
    "diloco": "DiLoCo*",
    "streaming_diloco": "Streaming DiLoCo*",
    "decoupled_diloco": "Decoupled DiLoCo*",
}
"""Names of the kinds for people; a star marks those that change the training."""


@dataclass(frozen=True, kw_only=True)
class BoundRow:
    """A bound plan with the figures that plans are compared by.

    Attributes
    ----------
    busy_s
        Time for which each site computes, on its busiest device, and each link (``East->West``)
        sends. [s]
    price
        Tokens that the plan needs over those of unchanged training.
    condition
        Where the price is beyond what is published; empty: nowhere.
    """

    bound: BoundPlan
    candidate: Candidate | CopySet | PipelineSites
    figures: ComparedFigures
    memory: tuple[DomainMemory, ...]
    busy_s: dict[str, float]
    price: TokenPrice = UNCHANGED
    condition: str = ""

    @property
    def kind(self) -> Family:
        """Kind of the plan."""
        mode = self.bound.plan.synchronisation
        return kind_of_mode(mode) or kind_of_chains(self.candidate.chains)


def kind_of_mode(mode: Synchronisation) -> Family | None:
    """Kind of copies that seldom synchronise; None of those in step."""
    if agree_every_step(mode):
        return None
    if isinstance(mode, DecoupledDiLoCo):
        return "decoupled_diloco"
    return "streaming_diloco" if mode.overlap_steps else "diloco"


def kind_of_chains(chains: Sequence[Chain]) -> Family:
    """Kind of a plan in step, by the sites of each of its pipelines."""
    if len(chains) == 1:
        return "single" if len(chains[0]) == 1 else "pipeline"
    return "replicas" if all(len(chain) == 1 for chain in chains) else "hybrid"


def row_of_candidate(request: PlanRequest, candidate: Candidate | CopySet) -> BoundRow | str:
    """Simulate a candidate as a whole plan; the reason where the trainer or memory refuses it."""
    workload = candidate.setting.workload(request.job)
    return _row(request, candidate, workload, candidate.plan(request.topology))


def row_of_plan(request: PlanRequest, row: BoundRow, plan: Plan) -> BoundRow | str:
    """Simulate another plan of the pipelines of a row; the reason where it is refused."""
    return _row(request, row.candidate, row.bound.workload, plan)


def row_in_force(request: PlanRequest, in_force: BoundPlan) -> BoundRow | None:
    """Row of a plan in force, if it fits and is one that the request asks for."""
    plan = in_force.plan
    names = request.schedules or (plan.schedule,)
    if not any(
        plan.schedule.startswith(name) if name == INTERLEAVED else plan.schedule == name
        for name in names
    ):
        return None
    row = _row(request, PipelineSites.of_plan(plan), in_force.workload, plan)
    return row if isinstance(row, BoundRow) else None


def _row(
    request: PlanRequest,
    candidate: Candidate | CopySet | PipelineSites,
    workload: Workload,
    plan: Plan,
) -> BoundRow | str:
    """Simulate a plan; the reason where the trainer or memory refuses it."""
    try:
        if agree_every_step(plan.synchronisation):
            return _row_of_a_step(request, candidate, workload, plan)
        check_plan(request.trainer, request.topology, workload, plan)
        check_memory(request.topology, workload, plan)
        return _row_of_a_period(request, candidate, workload, plan)
    except ValueError as error:
        return str(error)


def _row_of_a_step(
    request: PlanRequest,
    candidate: Candidate | CopySet | PipelineSites,
    workload: Workload,
    plan: Plan,
) -> BoundRow:
    """Row of a plan all steps of which are alike."""
    topology = request.topology
    result = simulate_compiled(topology, workload, plan, request.corrections, is_recorded=False)
    priced = keep_counted_prices(topology)
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
        bound=_bound(request, workload, plan, result.makespan_s),
        candidate=candidate,
        figures=_figures(
            request,
            candidate.sites,
            workload,
            step_s=result.makespan_s,
            wan_bytes=result.communication_cost_bytes,
            memory=result.memory,
            usd=None if priced is None else cost_of(result, priced).total_usd,
        ),
        memory=result.memory,
        busy_s=busy_s,
    )


def _row_of_a_period(
    request: PlanRequest,
    candidate: Candidate | CopySet | PipelineSites,
    workload: Workload,
    plan: Plan,
) -> BoundRow:
    """Row of a plan whose copies seldom exchange, means over a period."""
    topology, corrections = request.topology, request.corrections
    step_s, wan_bytes = mean_step(topology, workload, plan, corrections)
    judged = JudgedPlan(workload=workload, plan=plan, step_s=step_s)
    use = mean_use(topology, judged, corrections)
    price, condition = price_of(plan, workload), beyond_published(plan, workload)
    if request.token_factor is not None:
        price, condition = TokenPrice(factor=request.token_factor, note="as given"), ""
    return BoundRow(
        bound=_bound(request, workload, plan, step_s),
        candidate=candidate,
        figures=_figures(
            request,
            candidate.sites,
            workload,
            step_s=step_s,
            wan_bytes=wan_bytes,
            memory=use.memory,
            usd=step_usd(topology, judged, use),
            token_factor=price.factor or 1.0,
        ),
        memory=use.memory,
        busy_s=dict(use.busy_s),
        price=price,
        condition=condition,
    )


def _bound(request: PlanRequest, workload: Workload, plan: Plan, step_s: float) -> BoundPlan:
    return BoundPlan(
        topology=request.topology,
        workload=workload,
        plan=plan,
        trainer=request.trainer.name,
        step_s=step_s,
        corrections=request.corrections,
    )


def _figures(
    request: PlanRequest,
    sites: frozenset[int],
    workload: Workload,
    *,
    step_s: float,
    wan_bytes: float,
    memory: tuple[DomainMemory, ...],
    usd: float | None,
    token_factor: float = 1.0,
) -> ComparedFigures:
    domains = request.topology.domains
    peak = sum(domains[site].peak_flops_per_s for site in sorted(sites))
    return ComparedFigures(
        step_s=step_s,
        utilisation=workload.flops_per_iteration / (peak * step_s),
        wan_bytes=wan_bytes,
        memory_fraction=max(one.required_bytes / one.capacity_bytes for one in memory),
        num_sites=len(sites),
        usd=usd,
        token_factor=token_factor,
    )
