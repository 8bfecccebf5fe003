"""Iterations per second: plain SimPy, the readable engine, the compiled one in its two forms."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from bench.batches import event_by_event, iterations
from bench.plain_simpy import plain_makespan_s
from bench.report import Section, Table, column
from bench.tasks import even_split, placement_task, stepping
from bench.timing import Contestant, Effort, Timing, race, speed_ratio
from bench.worlds import FAIR, LAWS, SEED, SIZES, SMALL, Size, job, mesh, returning, straight
from des import Plan, Topology, Workload, simulate
from des.compiled.simulate import simulate_compiled
from des.world.transport import PLAIN

Simulator = Callable[[Topology, Workload, Plan], object]

PLAIN_SIMPY, ENGINE, TWIN = "plain SimPy", "engine", "compiled, all results"
EVENTS, BATCH, METRICS = "compiled, by events", "compiled batch", "batch with metrics"
THREADS = {1: "1 thread", 2: "2 threads"}
NUM_WEATHERS = 8
BATCH_SIZE, NUM_BATCHES = 1024, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """One simulator on one case."""

    size: str = column("stages and microbatches")
    simulator: str = column("simulator")
    iterations_per_s: float = column("iterations/s", ",.0f")
    target: str = column("target")
    iterations_per_cpu_s: float = column("per CPU second", ",.0f")
    ratio: float = column("x the first", ",.1f")
    spread_percent: float = column("± %", ".0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Common settings of the cases of one table."""

    title: str
    law: str
    plan: Callable[[Size, int], Plan] = straight
    is_fair: bool = False
    has_targets: bool = False

    @property
    def is_foreseeable(self) -> bool:
        """Whether the batch without events can simulate it."""
        return self.plan is straight and not self.is_fair and self.law != "moving"


KINDS = (
    Kind(title="Moving links", law="moving", has_targets=True),
    Kind(title="Links drawn once an epoch", law="drawn", has_targets=True),
    Kind(title="Links that stand still", law="steady"),
    Kind(title="Moving links, placements that come back", law="moving", plan=returning),
    Kind(title="Moving links shared fairly", law="moving", is_fair=True),
)
TARGETS = {
    f"{BATCH}, 2 threads": ("4,000,000", "400,000", "130,000"),
    EVENTS: ("x 150",) * len(SIZES),
}
"""Targets for each size: iterations/s, or times plain SimPy by CPU time."""

NOTE = (
    f'"{PLAIN_SIMPY}" gives the makespan only; "{ENGINE}" and "{TWIN}" all spans, transfers and '
    f'memory figures as Python values, equal to the last bit. "{EVENTS}": the queue of events in '
    f'compiled code, for any plan; makespan, use of stages and links. "{BATCH}": the same figures '
    "of 16 environments in step, on links that stand still, for placements that need no queue. "
    f'"{METRICS}": {BATCH_SIZE} steps of the batched environment, which also draw the links, weigh '
    "the memory and give metrics, reward and observation. A target with an x is a multiple of "
    "plain SimPy."
)


def measure(effort: Effort) -> Section:
    """Time all simulators on all kinds of cases."""
    sizes = SMALL if effort.is_quick else SIZES
    tables = [
        Table(
            title=kind.title,
            rows=[row for size in sizes for row in _rows(kind, size, effort)],
            in_page=kind.has_targets,
        )
        for kind in KINDS
    ]
    return Section(name="simulation", tables=tables, notes=[NOTE])


def _rows(kind: Kind, size: Size, effort: Effort) -> list[RateRow]:
    batch_size = 16 if effort.is_quick else BATCH_SIZE
    workload = job(size.num_microbatches)
    world = mesh(size.num_stages, LAWS[kind.law], FAIR if kind.is_fair else PLAIN)
    case = world, workload, kind.plan(size, workload.num_layers)
    contestants = [*_one_by_one(kind, *case), _by_events(*case)]
    if kind.is_foreseeable:
        contestants += _batches(*case, batch_size * NUM_BATCHES)
        contestants += _with_metrics(kind, size, batch_size)
    timings = race(contestants, effort)
    return [_row(kind, size, timing, timings[0]) for timing in timings]


def _one_by_one(kind: Kind, world: Topology, workload: Workload, plan: Plan) -> list[Contestant]:
    """Simulators that are called with the next of some epochs."""
    epochs = [world.epoch_of(SEED + each) for each in range(NUM_WEATHERS)]

    def calling(simulator: Simulator) -> Callable[[], object]:
        turns = itertools.cycle(epochs)
        return lambda: simulator(next(turns), workload, plan)

    simulators: dict[str, Simulator] = {
        PLAIN_SIMPY: plain_makespan_s,
        ENGINE: simulate,
        TWIN: simulate_compiled,
    }
    return [
        Contestant(name=name, call=calling(simulator))
        for name, simulator in simulators.items()
        if not (kind.is_fair and name == PLAIN_SIMPY)
    ]


def _by_events(world: Topology, workload: Workload, plan: Plan) -> Contestant:
    call = event_by_event(world, workload, plan, num_seeds=NUM_WEATHERS)
    return Contestant(name=EVENTS, call=call, num_items=NUM_WEATHERS)


def _batches(world: Topology, workload: Workload, plan: Plan, num_lanes: int) -> list[Contestant]:
    return [
        Contestant(
            name=f"{BATCH}, {text}",
            call=iterations(world, workload, plan, num_lanes=num_lanes, num_threads=num_threads),
            num_items=num_lanes,
        )
        for num_threads, text in THREADS.items()
    ]


def _with_metrics(kind: Kind, size: Size, batch_size: int) -> list[Contestant]:
    """Steps of environments that place the layers as the plan does."""
    task = placement_task(size, kind.law)
    actions = even_split(size, task)[None, None].repeat(batch_size, axis=1)
    return [
        Contestant(
            name=f"{METRICS}, {text}",
            call=stepping(task, batch_size, num_threads, actions),
            num_items=batch_size,
        )
        for num_threads, text in THREADS.items()
    ]


def _row(kind: Kind, size: Size, timing: Timing, first: Timing) -> RateRow:
    targets = TARGETS.get(timing.name) if kind.has_targets and size in SIZES else None
    return RateRow(
        size=str(size),
        simulator=timing.name,
        iterations_per_s=timing.items_per_s,
        target=targets[SIZES.index(size)] if targets else "",
        iterations_per_cpu_s=timing.items_per_cpu_s,
        ratio=speed_ratio(timing, first),
        spread_percent=1e2 * timing.spread_fraction,
    )
