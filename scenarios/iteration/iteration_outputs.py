"""Files of a simulated iteration: rows, figures, report and sums."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from des import IterationResult, cross_domain_bytes
from des.plan.plan_texts import PERFECT_DEVICES, pipelines_text
from des.views.chrome_trace import chrome_trace_json
from des.views.exposure import exposed_communication_s
from des.views.memory_timeline import MemoryTimeline
from des.views.plan_views import views_of_result
from des.views.prices import TrainingCost, cost_of, keep_counted_prices
from scenarios.frame.outputs import Columns, OutputChoice
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.iteration.iteration_scenario import IterationScenario

if TYPE_CHECKING:
    from scenarios.iteration.iteration_scenario import JobTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCost:
    """Communication time of an iteration, and its cost in dollars.

    ``cost`` is None where the world gives no price.
    """

    exposed_communication_s: float
    cost: TrainingCost | None


def network_cost_of(scenario: IterationScenario, result: IterationResult) -> NetworkCost:
    """Reckon exposed communication, and dollars if the world prices its GPUs."""
    topology = scenario.topology
    priced = keep_counted_prices(topology)
    return NetworkCost(
        exposed_communication_s=exposed_communication_s(
            result, topology, scenario.workload, scenario.plan, scenario.corrections
        ),
        cost=None if priced is None else cost_of(result, priced),
    )


def iteration_summary(
    scenario: IterationScenario,
    result: IterationResult,
    network_cost: NetworkCost,
    memory: MemoryTimeline,
    times: Sequence[JobTimes] = (),
) -> dict[str, object]:
    """Return the content of result.json: what was simulated and its figures."""
    cost, fullest = network_cost.cost, memory.fullest
    return {
        "model": scenario.workload.name,
        "num_layers": scenario.workload.num_layers,
        "num_microbatches": scenario.workload.num_microbatches,
        "tokens_per_microbatch": scenario.workload.tokens_per_microbatch,
        "schedule": scenario.plan.schedule,
        "placement": list(scenario.plan.placement.domain_of_layer),
        "replicas": [list(one.domain_of_layer) for one in scenario.plan.replicas],
        "shares": list(scenario.plan.shares),
        "parallelism": [asdict(one) for one in scenario.plan.parallelism],
        "exchange": asdict(scenario.plan.exchange),
        "activation_compression": scenario.plan.activation_compression,
        "domains": list(scenario.topology.index_of),
        "layer_times": {one.name: one.layer_times for one in scenario.topology.domains},
        "seed": scenario.seed,
        "corrections": scenario.corrections.plain(),
        "makespan_s": result.makespan_s,
        "tokens_per_s": scenario.workload.tokens_per_iteration / result.makespan_s,
        "utilisation": result.utilisation,
        "bubble_fraction": result.bubble_fraction,
        "communication_cost_bytes": result.communication_cost_bytes,
        "transfer_compute_ratio": result.transfer_compute_ratio,
        "exposed_communication_s": network_cost.exposed_communication_s,
        "exposed_exchange_s": result.exposed_exchange_s,
        "cost": None if cost is None else asdict(cost) | {"total_usd": cost.total_usd},
        "cross_domain_bytes": _cross_domain_bytes(scenario),
        "memory": [asdict(domain) for domain in result.memory],
        "fullest_gpu": {
            "domain": fullest.domain,
            "device": fullest.device,
            "peak_bytes": fullest.peak_bytes,
            "capacity_bytes": fullest.capacity_bytes,
        },
        **({"jobs": [asdict(one) for one in times]} if times else {}),
    }


def _cross_domain_bytes(scenario: IterationScenario) -> float:
    """Activations and their gradients of all replicas, as they are sent."""
    workload, plan = scenario.workload, scenario.plan
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    num_bytes = sum(
        cross_domain_bytes(replace(workload, num_microbatches=share), placement)
        for placement, share in zip(plan.placements, shares, strict=True)
    )
    return num_bytes / plan.activation_compression


def iteration_files(
    scenario: IterationScenario,
    result: IterationResult,
    memory: MemoryTimeline,
    said: Mapping[str, object],
    *,
    choice: OutputChoice,
    repeat: Repetition,
) -> dict[str, bytes]:
    """Make the content of all files; it depends on the scenario alone, not on where it was."""
    tables: dict[str, Columns] = {
        "spans": result.columns("spans"),
        "stages": {"stage": range(len(result.stages)), **result.columns("stages")},
        "links": result.columns("links"),
        "memory_over_time": memory.columns(),
    }
    return {
        "trace.json": chrome_trace_json(result),
        **choice.row_files(tables),
        "result.json": (json.dumps(said, indent=2, allow_nan=False) + "\n").encode(),
        **choice.report_files(_report(scenario, result, said, repeat)),
    }


def _report(
    scenario: IterationScenario,
    result: IterationResult,
    said: Mapping[str, object],
    repeat: Repetition,
) -> Report:
    names = tuple(scenario.topology.index_of)
    views = views_of_result(scenario.topology, scenario.program, result, title=title_of(scenario))
    figures = {
        name: said[name]
        for name in (
            *("makespan_s", "tokens_per_s", "utilisation", "bubble_fraction"),
            *("communication_cost_bytes", "exposed_communication_s", "exposed_exchange_s"),
        )
    }
    return Report(
        title=f"{title_of(scenario)} on {', '.join(names)}",
        question=f"How long does one iteration of {scenario.workload.name} take with the plan "
        f"{pipelines_text(scenario.plan, names)}?",
        answer=f"{result.makespan_s:.4g} s, {said['tokens_per_s']:,.0f} tokens a second; "
        f"{100 * result.bubble_fraction:.1f} % of the time of the GPUs in use is idle."
        f"{'' if scenario.plan.parallelism else f' {PERFECT_DEVICES.capitalize()}.'}",
        repeat=repeat,
        first=views.first,
        tables=(
            PageTable(
                title="Figures",
                head=("figure", "value"),
                rows=tuple((name, f"{value:.6g}") for name, value in figures.items()),
            ),
        ),
        figures=views.more,
    )


def title_of(scenario: IterationScenario) -> str:
    """Return model, microbatches and schedule in a line."""
    workload, num_replicas = scenario.workload, len(scenario.plan.placements)
    replicas = f", {num_replicas} replicas" if num_replicas > 1 else ""
    return (
        f"{workload.name}, {workload.num_layers} layers, {workload.num_microbatches} microbatches, "
        f"{scenario.plan.schedule}{replicas}"
    )
