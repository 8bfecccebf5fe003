"""Figures of the steps of a training run: simulated, or remembered where nothing has changed."""

from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

from des.costs.feasibility import tightest_domain
from des.dynamics.link_course import StarvationError, Weather
from des.engine.result import IterationResult
from des.job.workload import Workload
from des.plan.buckets import Bucket, buckets_behind
from des.plan.corrections import Corrections
from des.plan.placement import Stage
from des.plan.plan import Plan
from des.plan.synchronisation import Fragment, all_reduce_bytes, fragments_due
from des.simulation.iteration import exchange_behind_s, simulate
from des.training.background import beside_jobs
from des.world.domain_load import DomainLoad
from des.world.topology import Topology

_MARGIN = 1.0 + 1e-12
"""Safety margin on times, against rounding: figures that are too close to call are not cached."""


class Timed(Protocol):
    """Outcome with a duration."""

    @property
    def duration_s(self) -> float:
        """Duration of the iteration or exchange. [s]"""


TimedT = TypeVar("TimedT", bound=Timed)


class StepFigures(NamedTuple):
    """One iteration in numbers; ``misfit`` says what memory it lacks, None where it fits."""

    duration_s: float
    exposed_exchange_s: float
    num_bytes: float
    utilisation: float
    misfit: str | None


class ExchangeFigures(NamedTuple):
    """An exchange during the next steps: how long it takes and what it puts on all links."""

    duration_s: float
    num_bytes: float


class StepSimulator:
    """Simulates iterations of a world at any time of a run.

    What was simulated while all links held their figures is taken again wherever a link has the
    same ones for as long, and plan, loads and exchanges due are the same: the result would be the
    same to the last bit.
    """

    def __init__(self, workload: Workload, corrections: Corrections) -> None:
        self._workload, self._corrections = workload, corrections
        self._world: Topology | None = None
        self._weather: Weather | None = None
        self._steps: dict[Hashable, StepFigures] = {}
        self._exchanges: dict[Hashable, ExchangeFigures] = {}
        self._due_in: dict[tuple[Plan, int], tuple[Fragment, ...]] = {}

    @property
    def world(self) -> Topology:
        """The world as it was entered, whose time 0 is that of the run."""
        assert self._world is not None
        return self._world

    def enter(self, world: Topology) -> None:
        """Continue in a world, which may be the same as before."""
        if world == self._world:
            return
        self._world = world
        moving = world.movement
        self._weather = None if moving is None else Weather(moving, world.links)
        self._steps.clear()
        self._exchanges.clear()

    def iteration(
        self, plan: Plan, loads: Sequence[DomainLoad], step: int, now_s: float
    ) -> StepFigures:
        """Simulate the step that starts now, with the jobs that run now."""

        def run(world: Topology) -> StepFigures:
            left = beside_jobs(world, loads)
            return _figures(simulate(left, self._workload, plan, self._corrections, step=step))

        taken = tuple((load.utilisation, load.memory_occupancy) for load in loads)
        key = (plan, self._due(plan, step), taken)
        return self._remembered(self._steps, key, now_s, run)

    def exchange(self, plan: Plan, step: int, now_s: float) -> ExchangeFigures | None:
        """Simulate the exchange that starts now, after a step; None where none is due."""
        due = self._due(plan, step)
        if not due or plan.synchronisation.overlap_steps == 0:
            return None

        def run(world: Topology) -> ExchangeFigures:
            return ExchangeFigures(
                exchange_behind_s(world, self._workload, plan, step, self._corrections),
                bytes_behind(world, plan.stages, buckets_behind(self._workload, plan, step)),
            )

        return self._remembered(self._exchanges, (plan, due), now_s, run)

    def _due(self, plan: Plan, step: int) -> tuple[Fragment, ...]:
        """Fragments that replicas synchronise after a step; all else is the same in every step."""
        if not plan.replicas:
            return ()
        mode = plan.synchronisation
        key = (plan, step % mode.steps_between)
        if key not in self._due_in:
            self._due_in[key] = fragments_due(mode, key[1], self._workload.num_layers)
        return self._due_in[key]

    def _remembered(
        self,
        known: dict[Hashable, TimedT],
        what: Hashable,
        now_s: float,
        run: Callable[[Topology], TimedT],
    ) -> TimedT:
        key = (what, self._factors(now_s))
        figures = known.get(key)
        if figures is not None and self._hold(now_s, figures.duration_s):
            return figures
        with add_time_to_error(now_s):
            figures = run(self.world.later(now_s))
        if self._hold(now_s, figures.duration_s):
            known[key] = figures
        return figures

    def _factors(self, now_s: float) -> tuple[tuple[float, float], ...]:
        if self._weather is None:
            return ()
        pieces = (self._weather.piece(link, now_s) for link in range(len(self.world.links)))
        return tuple((bandwidth, latency) for bandwidth, latency, _ in pieces)

    def _hold(self, start_s: float, duration_s: float) -> bool:
        """Whether no figure of any link changes within a time."""
        if self._weather is None:
            return True
        end_s = start_s + duration_s
        for link in range(len(self.world.links)):
            *factors, until_s = self._weather.piece(link, start_s)
            while until_s <= end_s * _MARGIN:
                if until_s >= end_s:
                    return False
                *following, until_s = self._weather.piece(link, until_s)
                if following != factors:
                    return False
        return True


@contextmanager
def add_time_to_error(now_s: float) -> Generator[None, None, None]:
    """Add the time of the run to the error about a link that is down for ever."""
    try:
        yield
    except StarvationError as error:
        raise StarvationError(
            f"training run: from {now_s:g} s on, seconds counted from there: {error}"
        ) from error


def bytes_behind(topology: Topology, stages: Sequence[Stage], buckets: Iterable[Bucket]) -> float:
    """Bytes over all links of an exchange after the steps after a step, each hop counted.

    Every replica passes its share of the ring all-reduce on to the next one.
    """
    num_bytes = 0.0
    for bucket in buckets:
        domains = [stages[stage].domain for stage in bucket.stages]
        ring = zip(domains, [*domains[1:], domains[0]], strict=True)
        num_hops = sum(len(topology.route(here, there)) for here, there in ring)
        num_bytes += num_hops * all_reduce_bytes(bucket.num_bytes, 8.0, len(domains))
    return num_bytes


def _figures(result: IterationResult) -> StepFigures:
    tightest = tightest_domain(result.memory)
    return StepFigures(
        duration_s=result.makespan_s,
        exposed_exchange_s=result.exposed_exchange_s,
        num_bytes=result.communication_cost_bytes,
        utilisation=result.utilisation,
        misfit=None if tightest.fits else str(tightest),
    )
