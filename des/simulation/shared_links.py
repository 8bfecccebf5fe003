"""Several jobs that share the links of a world: an iteration of each, on one clock."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative
from des.clock import NUMBERS_PER_JOB, Clock, Event
from des.engine.iteration import Iteration
from des.engine.media import Media
from des.engine.network import Network
from des.engine.result import IterationResult
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.program.lowering import lower
from des.world.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentJob:
    """One of several jobs that run on the same links.

    Attributes
    ----------
    workload, plan
        Workload of an iteration, and the plan for it.
    start_s
        Start of the iteration, on the clock of the world. [s]
    priority
        Of messages that wait for a link, those of the job with the highest number go first.
    """

    workload: Workload
    plan: Plan
    start_s: float = 0.0
    priority: int = 0

    def __post_init__(self) -> None:
        require_non_negative("concurrent job", "start_s", self.start_s)
        if isinstance(self.priority, bool) or not isinstance(self.priority, int):
            raise ValueError(
                f"concurrent job: priority must be a whole number, got {self.priority!r}"
            )


def simulate_together(
    topology: Topology, jobs: Sequence[ConcurrentJob], corrections: Corrections = NO_CORRECTIONS
) -> tuple[IterationResult, ...]:
    """Simulate an iteration of each of several jobs whose messages share the links.

    Jobs meet on links only: each has the GPUs and the memory of its domains, and the wires inside
    them, as if it were alone. Its schedule does not know of the others either.

    Returns
    -------
    tuple
        A result per job, in the order given: its times count from its own start, and its links
        tell what it sent itself.

    Raises
    ------
    ValueError
        If there is no job, if priorities differ though links are not shared first come, first
        served, or as `des.simulate`.
    UnreachableError, StarvationError
        As `des.simulate`.

    Notes
    -----
    How messages share a link is a rule of the world's transport, whichever jobs they are of.

    - ``fifo`` and equal priorities: first come, first served.
    - ``fifo`` and priorities that differ: strict priority queueing without preemption [1]_. When a
      link becomes free, the waiting message of the highest priority goes next, and of equal ones
      the one that came first. A message under way is never interrupted, and one that becomes ready
      at the very moment at which the link is given away comes too late.
    - ``fair``: all messages on a link get equal parts of it, so a job with more of them gets more.
    - ``none``: nothing is shared, and every job is as if alone.

    What happens at the same time is ordered by class (`des.clock`), then by job: the one of higher
    priority first, of equal ones the one that comes first in ``jobs``. Nothing else depends on the
    order of the jobs.

    References
    ----------
    .. [1] L. Kleinrock, "Queueing Systems, Volume II: Computer Applications", 1976, chapter 3
       (head-of-the-line priority).
    """
    _check(topology, jobs)
    by_priority = len({job.priority for job in jobs}) > 1
    clock = Clock()
    media = Media(clock, topology, by_priority=by_priority)
    iterations: dict[int, Iteration] = {}
    for place, index in enumerate(_ranking(jobs)):
        network = Network(clock, topology, corrections, media=media, priority=jobs[index].priority)
        program = lower(topology, jobs[index].workload, jobs[index].plan, corrections)
        iterations[index] = Iteration(clock, network, program, first_number=place * NUMBERS_PER_JOB)
    for index, iteration in iterations.items():
        clock.process(_begin(clock, iteration, jobs[index].start_s))
    clock.run_out()
    return tuple(iterations[index].result() for index in range(len(jobs)))


def iterate_together(
    topology: Topology, jobs: Sequence[ConcurrentJob], num_iterations: Sequence[int]
) -> tuple[tuple[float, ...], ...]:
    """Simulate iterations of several jobs, each one after the other, on links that all share.

    Returns
    -------
    tuple
        Ends of the iterations of each job, on the clock of the world. [s]

    Raises
    ------
    ValueError, UnreachableError, StarvationError
        As `simulate_together`; also if a job has no number of iterations.
    """
    _check(topology, jobs)
    if len(num_iterations) != len(jobs):
        raise ValueError(
            f"iterate_together: num_iterations must be one for each of the {len(jobs)} jobs, "
            f"got {len(num_iterations)}"
        )
    for count in num_iterations:
        require_count("iterate_together", "num_iterations", count)
    clock = Clock()
    media = Media(clock, topology, by_priority=len({job.priority for job in jobs}) > 1)
    ends_s: list[list[float]] = [[] for _ in jobs]
    for place, index in enumerate(_ranking(jobs)):
        repeated = _repeat(
            *(clock, media, topology, jobs[index]),
            num_iterations=num_iterations[index],
            ends_s=ends_s[index],
            first_number=place * NUMBERS_PER_JOB,
        )
        clock.process(repeated)
    clock.run_out()
    assert [len(each) for each in ends_s] == list(num_iterations), "all iterations end"
    return tuple(map(tuple, ends_s))


def _repeat(
    clock: Clock,
    media: Media,
    topology: Topology,
    job: ConcurrentJob,
    *,
    num_iterations: int,
    ends_s: list[float],
    first_number: int,
) -> Generator[Event, None, None]:
    """Run iterations one after the other and note when they end."""
    network = Network(clock, topology, NO_CORRECTIONS, media=media, priority=job.priority)
    yield clock.at(job.start_s)
    for step in range(num_iterations):
        program = lower(topology, job.workload, job.plan, step=step)
        iteration = Iteration(clock, network, program, first_number=first_number)
        end_s = yield from iteration.run()
        yield clock.at(end_s)
        ends_s.append(end_s)


def _check(topology: Topology, jobs: Sequence[ConcurrentJob]) -> None:
    if not jobs:
        raise ValueError("simulate_together: jobs must be at least one, got none")
    priorities = sorted({job.priority for job in jobs})
    sharing = topology.transport.sharing
    if len(priorities) > 1 and sharing != "fifo":
        raise ValueError(
            f"simulate_together: priorities of jobs must be equal where the transport's sharing is "
            f"{sharing}, as no message waits for another there; "
            f"got {', '.join(map(str, priorities))}"
        )
    for job in jobs:
        job.plan.check_against(topology, job.workload)


def _ranking(jobs: Sequence[ConcurrentJob]) -> list[int]:
    """Jobs in the order in which what happens at the same time happens."""
    return sorted(range(len(jobs)), key=lambda index: -jobs[index].priority)


def _begin(clock: Clock, iteration: Iteration, start_s: float) -> Generator[Event, None, None]:
    """Let an iteration begin at its time, before anything else of the same time."""
    yield clock.at(start_s)
    iteration.start()
