"""Growth of time and memory with stages, microbatches, environments and domains."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.flat.batched_env import BatchedPlacementEnv
from bench.batches import event_by_event, iterations
from bench.report import Picture, Section, Table, column
from bench.tasks import even_split, placement_task, stepping
from bench.timing import Contestant, Effort, Timing, race
from bench.worlds import MOVING, SEED, SIZES, SMALL, Size, job, mesh, straight
from des.compiled.operation_table import operation_table
from des.figures.figure import Figure
from des.figures.marks import Line
from des.figures.palette import colour
from des.figures.panels import Axis, Panel
from des.figures.paper import image_bytes

FILE_NAME = "performance_growth.png"
EVENTS, BATCH, METRICS = "by events", "compiled batch", "batch with metrics"
NUM_SEEDS = 8
NUMS_ENVS_IN_MEMORY = (1024, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A batch of equal iterations; more domains than stages stay idle."""

    num_stages: int = 8
    num_microbatches: int = 32
    num_domains: int = 8
    num_envs: int = 1024

    @property
    def size(self) -> Size:
        """The pipeline."""
        return Size(num_stages=self.num_stages, num_microbatches=self.num_microbatches)

    @property
    def num_operations(self) -> int:
        """Passes of one iteration."""
        return len(operation_table("1f1b", self.num_stages, self.num_microbatches).operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of which one figure grows."""

    grows: str
    simulator: str
    points: Sequence[Point]

    @property
    def counted(self) -> str:
        """Expected growth of the time: in proportion to this, or less."""
        return "links" if self.grows == "domains" else "operations"

    def count(self, point: Point) -> int:
        """Size of the varied quantity in a call."""
        if self.grows == "domains":
            return point.num_domains * (point.num_domains - 1)
        num_iterations = NUM_SEEDS if self.simulator == EVENTS else point.num_envs
        return point.num_operations * num_iterations


STAGES = [Point(num_stages=count, num_domains=16) for count in (2, 4, 8, 16)]
MICROBATCHES = [Point(num_microbatches=count) for count in (8, 16, 32, 64, 128, 256)]
ENVIRONMENTS = [Point(num_envs=count) for count in (16, 64, 256, 1024, 4096)]
DOMAINS = [Point(num_stages=4, num_domains=count) for count in (4, 8, 16, 32)]
SERIES = (
    Series(grows="stages", simulator=EVENTS, points=STAGES),
    Series(grows="stages", simulator=BATCH, points=STAGES),
    Series(grows="stages", simulator=METRICS, points=STAGES),
    Series(grows="microbatches", simulator=EVENTS, points=MICROBATCHES),
    Series(grows="microbatches", simulator=BATCH, points=MICROBATCHES),
    Series(grows="microbatches", simulator=METRICS, points=MICROBATCHES),
    Series(grows="environments", simulator=METRICS, points=ENVIRONMENTS),
    Series(grows="domains", simulator=METRICS, points=DOMAINS),
)
QUICK_POINTS = [
    Point(num_stages=2, num_microbatches=count, num_domains=3, num_envs=16) for count in (2, 4)
]
QUICK_SERIES = [
    Series(grows="microbatches", simulator=simulator, points=QUICK_POINTS)
    for simulator in (EVENTS, BATCH, METRICS)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    """One point of a series."""

    grows: str = column("growing")
    simulator: str = column("simulator")
    size: str = column("stages and microbatches")
    num_domains: int = column("domains")
    num_iterations: int = column("iterations a call")
    count: str = column("in a call")
    call_ms: float = column("call [ms]", ",.3f")
    each_ns: float = column("each [ns]", ",.2f")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeRow:
    """The exponent of a series."""

    grows: str = column("growing")
    simulator: str = column("simulator")
    counted: str = column("counted")
    slope: float = column("slope", ".2f")
    last_slope: float = column("slope of the last two", ".2f")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """Memory of a batch."""

    size: str = column("domains and microbatches")
    environment_bytes: float = column("bytes an environment", ",.0f")
    rest_bytes: float = column("other bytes", ",.0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A series with what was measured."""

    series: Series
    counts: tuple[int, ...]
    calls_s: tuple[float, ...]

    def slope(self, num_points: int | None = None) -> float:
        """Exponent of the time over the count, fitted to all points or to some last ones."""
        counts, calls_s = np.array(self.counts), np.array(self.calls_s)
        first = 0 if num_points is None else len(counts) - num_points
        return float(np.polyfit(np.log(counts[first:]), np.log(calls_s[first:]), 1)[0])


def measure(effort: Effort) -> Section:
    """Time all series on one thread; fit the exponents; weigh the batches."""
    courses = [_course(each, effort) for each in (QUICK_SERIES if effort.is_quick else SERIES)]
    sizes, nums_envs = (SMALL, (4, 8)) if effort.is_quick else (SIZES, NUMS_ENVS_IN_MEMORY)
    return Section(
        name="growth",
        tables=[
            Table(title="Exponents of the time", rows=[_slope_row(each) for each in courses]),
            Table(
                title="Points",
                rows=[row for each in courses for row in _growth_rows(each)],
                in_page=False,
            ),
            Table(
                title="Memory",
                rows=[_memory_row(size, *nums_envs) for size in sizes],
                in_page=False,
            ),
        ],
        pictures=[
            Picture(
                file_name=FILE_NAME,
                caption="Time of a call over the operations in it, both logarithmic",
                content=image_bytes(
                    growth_figure([each for each in courses if each.series.counted == "operations"])
                ),
            )
        ],
        notes=[
            "One thread; links move by events, and batches hold them. Slope 1 is linear. Memory: "
            "what Python and numpy hold after a step, by the difference of two batches."
        ],
    )


def _course(series: Series, effort: Effort) -> Course:
    timings = race([_contestant(series, point) for point in series.points], effort)
    return Course(
        series=series,
        counts=tuple(series.count(point) for point in series.points),
        calls_s=tuple(_call_s(timing) for timing in timings),
    )


def _call_s(timing: Timing) -> float:
    return 1.0 / timing.items_per_cpu_s


def _contestant(series: Series, point: Point) -> Contestant:
    if series.simulator == METRICS:
        task = placement_task(point.size, "drawn", point.num_domains)
        actions = even_split(point.size, task)[None, None].repeat(point.num_envs, axis=1)
        return Contestant(name=str(point), call=stepping(task, point.num_envs, 1, actions))
    workload = job(point.num_microbatches)
    plan = straight(point.size, workload.num_layers)
    case = mesh(point.num_domains, MOVING), workload, plan
    if series.simulator == EVENTS:
        call = event_by_event(*case, num_seeds=NUM_SEEDS)
    else:
        call = iterations(*case, num_lanes=point.num_envs, num_threads=1)
    return Contestant(name=str(point), call=call)


def _growth_rows(course: Course) -> list[GrowthRow]:
    series = course.series
    return [
        GrowthRow(
            grows=series.grows,
            simulator=series.simulator,
            size=str(point.size),
            num_domains=point.num_domains,
            num_iterations=NUM_SEEDS if series.simulator == EVENTS else point.num_envs,
            count=f"{count:,} {series.counted}",
            call_ms=1e3 * call_s,
            each_ns=1e9 * call_s / count,
        )
        for point, count, call_s in zip(series.points, course.counts, course.calls_s, strict=True)
    ]


def _slope_row(course: Course) -> SlopeRow:
    return SlopeRow(
        grows=course.series.grows,
        simulator=course.series.simulator,
        counted=course.series.counted,
        slope=course.slope(),
        last_slope=course.slope(2),
    )


def _memory_row(size: Size, few: int, many: int) -> MemoryRow:
    _held_bytes(size, few)  # what the first one leaves in caches
    held = {num_envs: _held_bytes(size, num_envs) for num_envs in (few, many)}
    each = (held[many] - held[few]) / (many - few)
    return MemoryRow(
        size=f"K{size.num_stages} M{size.num_microbatches}",
        environment_bytes=each,
        rest_bytes=held[few] - few * each,
    )


def _held_bytes(size: Size, num_envs: int) -> int:
    """Return what a batch holds after its first step."""
    task = placement_task(size, "drawn")
    actions = even_split(size, task)[None].repeat(num_envs, axis=0)
    tracemalloc.start()
    environment = BatchedPlacementEnv(task, num_envs=num_envs, seed=SEED)
    environment.reset()
    environment.step(actions)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    environment.close()
    return held


def growth_figure(courses: Sequence[Course]) -> Figure:
    """Time of a call over operations."""
    lines = tuple(
        Line(
            label=f"{course.series.grows}, {course.series.simulator}: slope {course.slope():.2f}",
            x=tuple(map(float, course.counts)),
            y=course.calls_s,
            colour=colour(place),
            symbol="circle",
        )
        for place, course in enumerate(courses)
    )
    panel = Panel(
        x=Axis(label="operations in a call", scale="log"),
        y=Axis(label="CPU time of a call [s]", scale="log"),
        marks=lines,
        height=3.4,
        grid="both",
    )
    return Figure(
        name="performance_growth",
        title="Time of a call over the operations in it",
        seen=f"Times of {len(lines)} series, both axes logarithmic; slope 1 is linear.",
        panels=(panel,),
    )
