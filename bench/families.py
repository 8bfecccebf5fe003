"""Speed of `simulate_many` on plans of each family, in one process on one core."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from agents.judge.step_times import step_times_s
from bench.report import column
from bench.timing import Contestant, Effort, race
from bench.worlds import DRAWN, SEED, job, mesh
from des import (
    DiLoCo,
    GradientExchange,
    Placement,
    Plan,
    StreamingDiLoCo,
    Topology,
    Workload,
)
from des.compiled.many.families import FamilySimulation
from des.compiled.many.family_rows import write_plans
from des.compiled.many.simulation import simulate_many

NUM_DOMAINS, NUM_MICROBATCHES, NUM_PLANS = 4, 32, 4096
LAYERS_OF_A_BUCKET = 4
DUE_STEP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRow:
    """Plans of one family a second: as objects, and written down as rows before."""

    family: str = column("family, K4 M32, 80 layers")
    objects_per_s: float = column("plans/s", ",.0f")
    rows_per_s: float = column("plans/s, written down", ",.0f")
    spread_percent: float = column("± %", ".0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanStepRow:
    """Mean steps of plans over a period of 100 steps, with all exchanges of it."""

    family: str = column("family, K4 M32, 80 layers")
    plans_per_s: float = column("plans/s", ",.0f")
    spread_percent: float = column("± %", ".0f")


def measure(effort: Effort) -> list[FamilyRow]:
    """Time the families in turn, each plan with layers and an order of domains of its own."""
    workload = job(NUM_MICROBATCHES)
    world = mesh(NUM_DOMAINS, DRAWN).epoch_of(SEED)
    count = 16 if effort.is_quick else NUM_PLANS
    drawn = _families(workload)
    calls = [
        Contestant(name=name, call=call, num_items=count)
        for name, draw in drawn.items()
        for call in _calls(world, workload, [draw() for _ in range(count)])
    ]
    timings = race(calls, effort)
    return [
        FamilyRow(
            family=objects.name,
            objects_per_s=objects.items_per_cpu_s,
            rows_per_s=rows.items_per_cpu_s,
            spread_percent=1e2 * objects.spread_fraction,
        )
        for objects, rows in zip(timings[::2], timings[1::2], strict=True)
    ]


def measure_mean_steps(effort: Effort) -> list[MeanStepRow]:
    """Time mean steps over a period of groups that exchange rarely, by number of groups."""
    workload = job(NUM_MICROBATCHES)
    world = mesh(NUM_DOMAINS, DRAWN).epoch_of(SEED)
    rng, count = np.random.default_rng(SEED), 4 if effort.is_quick else NUM_PLANS // 8
    calls = []
    for name, mode in (("DiLoCo", DiLoCo()), ("Streaming DiLoCo", StreamingDiLoCo())):
        for groups in (2, NUM_DOMAINS):
            plans = [
                _plan(rng, workload.num_layers, groups, synchronisation=mode) for _ in range(count)
            ]
            label = f"{name}, {groups} groups"
            calls.append(
                Contestant(name=label, call=_mean_steps(world, workload, plans), num_items=count)
            )
    return [
        MeanStepRow(
            family=timing.name,
            plans_per_s=timing.items_per_cpu_s,
            spread_percent=1e2 * timing.spread_fraction,
        )
        for timing in race(calls, effort)
    ]


def _mean_steps(world: Topology, workload: Workload, plans: list[Plan]) -> Callable[[], object]:
    return lambda: step_times_s(world, workload, plans)


def _calls(
    world: Topology, workload: Workload, plans: list[Plan]
) -> tuple[Callable[[], object], Callable[[], object]]:
    written = write_plans(workload, world.num_domains, plans, [DUE_STEP] * len(plans))
    if written is None:
        raise RuntimeError("bench: rows must hold the plans of all families")
    simulation = FamilySimulation(workload, written)
    return (
        lambda: simulate_many([world], workload, plans, steps=[DUE_STEP] * len(plans)),
        lambda: simulation.times_on(world),
    )


def _families(workload: Workload) -> Mapping[str, Callable[[], Plan]]:
    """Plans of each family, drawn one after another."""
    rng = np.random.default_rng(SEED)
    small = GradientExchange(
        bucket_bytes=LAYERS_OF_A_BUCKET * workload.gradient_bytes * max(workload.num_parameters)
    )
    rare = DiLoCo(steps_between=DUE_STEP + 1)

    def drawn(num_groups: int, **fields: object) -> Callable[[], Plan]:
        return lambda: _plan(rng, workload.num_layers, num_groups, **fields)

    return {
        "pipelines": drawn(1),
        "replicas": drawn(NUM_DOMAINS),
        "replicas, 4 layers a bucket": drawn(NUM_DOMAINS, exchange=small),
        "replicas, due step of DiLoCo": drawn(NUM_DOMAINS, synchronisation=rare),
        "hybrids of 2 groups": drawn(2),
        "hybrids, 4 layers a bucket": drawn(2, exchange=small),
        "hybrids, due step of DiLoCo": drawn(2, synchronisation=rare),
    }


def _plan(rng: np.random.Generator, num_layers: int, num_groups: int, **fields: object) -> Plan:
    """Groups of equal size, each with all layers in random parts."""
    groups = rng.permutation(NUM_DOMAINS).reshape(num_groups, -1)
    placements = []
    for group in groups:
        cuts = rng.choice(np.arange(1, num_layers), len(group) - 1, replace=False)
        counts = np.diff([0, *np.sort(cuts), num_layers])
        placements.append(Placement.contiguous(group.tolist(), counts.tolist()))
    return Plan(placement=placements[0], replicas=tuple(placements[1:]), **fields)  # type: ignore[arg-type]
