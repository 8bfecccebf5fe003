"""Steps per second of the batched environment, policies left out."""

from dataclasses import dataclass, replace

from bench.report import Section, Table, column
from bench.tasks import placement_task, random_actions, stepping
from bench.timing import Contestant, Effort, Timing, race, speed_ratio
from bench.worlds import SIZES, SMALL, Size
from des import Corrections, IterationResult, Plan, Topology, Workload, simulate

LAWS = ("drawn", "steady")
BATCH_SIZES = (64, 1024)
NUM_ENVS_ONE_BY_ONE = 16
THREADS = {1: "1 thread", 2: "2 threads"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One batch."""

    size: str = column("domains and microbatches")
    links: str = column("links")
    batch: str = column("batch")
    steps_per_s: float = column("steps/s", ",.0f")
    steps_per_cpu_s: float = column("per CPU second", ",.0f")
    ratio: float = column("x one by one", ",.0f")
    spread_percent: float = column("± %", ".0f")


def measure(effort: Effort) -> Section:
    """Time steps with actions drawn at random, on links drawn once an epoch and on still ones."""
    sizes = SMALL if effort.is_quick else SIZES
    rows = [row for size in sizes for law in LAWS for row in _rows(size, law, effort)]
    return Section(
        name="environment",
        tables=[
            Table(
                title="Steps of the batched environment, random order_split",
                rows=rows,
                in_page=False,
            )
        ],
        notes=[
            "A step decodes the action, draws the links, simulates the iteration, weighs the "
            "memory and returns metrics, reward and observation. One by one: an episode in Python "
            "for each environment, on the SimPy engine."
        ],
    )


def in_simpy(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
) -> IterationResult:
    """Simulate with the readable engine; the batch cannot know that it has a compiled twin."""
    return simulate(topology, workload, plan, corrections)


def _rows(size: Size, law: str, effort: Effort) -> list[StepRow]:
    task = placement_task(size, law)
    num_slow, batch_sizes = (2, (4,)) if effort.is_quick else (NUM_ENVS_ONE_BY_ONE, BATCH_SIZES)
    call = stepping(replace(task, simulator=in_simpy), num_slow, 1, random_actions(task, num_slow))
    contestants = [Contestant(name="one by one", call=call, num_items=num_slow)]
    contestants += [
        Contestant(
            name=f"{num_envs}, {text}",
            call=stepping(task, num_envs, num_threads, random_actions(task, num_envs)),
            num_items=num_envs,
        )
        for num_envs in batch_sizes
        for num_threads, text in THREADS.items()
    ]
    timings = race(contestants, effort)
    return [_row(size, law, timing, timings[0]) for timing in timings]


def _row(size: Size, law: str, timing: Timing, slowest: Timing) -> StepRow:
    return StepRow(
        size=f"K{size.num_stages} M{size.num_microbatches}",
        links=law,
        batch=timing.name,
        steps_per_s=timing.items_per_s,
        steps_per_cpu_s=timing.items_per_cpu_s,
        ratio=speed_ratio(timing, slowest),
        spread_percent=1e2 * timing.spread_fraction,
    )
