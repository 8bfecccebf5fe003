"""Speed of simulation with layer times from shapes, against times from FLOPs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from agents.judge.steady_judge import SteadyJudge
from bench.batches import event_by_event, iterations
from bench.report import Section, column, one_table
from bench.simulation import BATCH, ENGINE, EVENTS, NUM_WEATHERS, TWIN
from bench.timing import Contestant, Effort, Timing, race, speed_ratio
from bench.worlds import DRAWN, SEED, SIZES, SMALL, Size, job, mesh, straight
from des import Placement, Plan, Topology, Workload, simulate
from des.compiled.simulate import simulate_compiled
from des.world.kernel_figures import FITTED_KERNELS

NUM_PLANS, NUM_LANES = 1024, 4096
SOURCES = ("FLOPs", "shapes")
LEAST_RATIO = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapesRow:
    """One simulator on one case, with times from shapes and from FLOPs."""

    size: str = column("stages and microbatches")
    simulator: str = column("simulator")
    iterations_per_s: float = column("iterations/s from shapes", ",.0f")
    from_flops_per_s: float = column("from FLOPs", ",.0f")
    ratio: float = column("x from FLOPs", ".3f")
    target: str = column("target")
    spread_percent: float = column("± %", ".0f")


NOTE = (
    "Links are drawn once an epoch. Times of passes are made once for a plan and a world, so only "
    "what each call makes can cost more: the step of the optimiser, and the tables of a "
    "call."
)


def measure(effort: Effort) -> Section:
    """Time the simulators in pairs that differ in the source of layer times."""
    rows = []
    for size in SMALL if effort.is_quick else SIZES:
        timings = iter(race(list(_contestants(size)), effort))
        rows += [_row(size, by_flops, next(timings)) for by_flops in timings]
    return one_table("layer_times", "Layer times from shapes", rows, NOTE, in_page=False)


def _contestants(size: Size) -> Iterator[Contestant]:
    """Yield each simulator with times from FLOPs, and right after it from shapes."""
    workload = job(size.num_microbatches)
    plan = straight(size, workload.num_layers)
    worlds = dict(zip(SOURCES, _worlds(size), strict=True))
    for name, make in _SIMULATORS.items():
        for source, world in worlds.items():
            call, num_items = make(world, workload, plan)
            yield Contestant(name=f"{name}; {source}", call=call, num_items=num_items)


def _worlds(size: Size) -> tuple[Topology, Topology]:
    by_flops = mesh(size.num_stages, DRAWN)
    domains = tuple(replace(domain, kernels=FITTED_KERNELS) for domain in by_flops.domains)
    return by_flops, replace(by_flops, domains=domains)


def _judging(world: Topology, workload: Workload, plan: Plan) -> tuple[Callable[[], object], int]:
    """Return a call that judges plans of even layers, in random orders of the domains."""
    judge = SteadyJudge(workload, world.num_domains)
    rng = np.random.default_rng(SEED)
    counts = [stage.num_layers for stage in plan.stages]
    orders = [rng.permutation(world.num_domains).tolist() for _ in range(NUM_PLANS)]
    plans = judge.plans_of([Plan(placement=Placement.contiguous(o, counts)) for o in orders])
    epoch = world.epoch_of(SEED)
    return lambda: judge.scores(judge.job_of(epoch), plans), NUM_PLANS


_SIMULATORS: dict[str, Callable[[Topology, Workload, Plan], tuple[Callable[[], object], int]]] = {
    ENGINE: lambda world, *case: (_calling(simulate, world, *case), 1),
    TWIN: lambda world, *case: (_calling(simulate_compiled, world, *case), 1),
    EVENTS: lambda *case: (event_by_event(*case, num_seeds=NUM_WEATHERS), NUM_WEATHERS),
    BATCH: lambda *case: (iterations(*case, num_lanes=NUM_LANES, num_threads=1), NUM_LANES),
    "many plans": _judging,
}


def _calling(
    simulator: Callable[[Topology, Workload, Plan], object],
    world: Topology,
    workload: Workload,
    plan: Plan,
) -> Callable[[], object]:
    epoch = world.epoch_of(SEED)
    return lambda: simulator(epoch, workload, plan)


def _row(size: Size, by_flops: Timing, by_shapes: Timing) -> ShapesRow:
    return ShapesRow(
        size=str(size),
        simulator=by_shapes.name.split(";")[0],
        iterations_per_s=by_shapes.items_per_s,
        from_flops_per_s=by_flops.items_per_s,
        ratio=speed_ratio(by_shapes, by_flops),
        target=f"{LEAST_RATIO}",
        spread_percent=1e2 * by_shapes.spread_fraction,
    )
