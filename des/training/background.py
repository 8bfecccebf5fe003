"""Other jobs on the GPUs of the domains: they come at random, queue up and slow the training down.

A domain may replay the loads of a queue that was simulated before (`des.cluster`). Else it is an
M/M/c queue of its own: jobs arrive as a Poisson process, up to ``most_jobs`` run
at a time for exponential times, and the others wait first come, first served. A job does not give
way to the training, nor the training to a job: what jobs take of the GPUs the training lacks.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import simpy

from des.base.checks import (
    MOST_ITEMS,
    require_count,
    require_fraction,
    require_non_negative,
    require_positive,
)
from des.clock import Clock
from des.training.replayed_load import ReplayedLoad
from des.world.domain_load import IDLE, DomainLoad
from des.world.topology import Topology


class LoadSample(NamedTuple):
    """Load that rules in a domain, given by position, from a time on."""

    time_s: float
    domain: int
    gpu_utilisation: float
    memory_occupancy: float
    queue_length: float

    @classmethod
    def of(cls, time_s: float, domain: int, load: DomainLoad) -> "LoadSample":
        """Return the load of a domain from a time on."""
        return cls(time_s, domain, load.utilisation, load.memory_occupancy, load.queue_length)


class BackgroundJob(NamedTuple):
    """A background job: its arrival, and its duration once it has its GPUs."""

    arrival_s: float
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundLoad:
    """Background jobs in one domain, which has none at time 0.

    Parameters
    ----------
    arrivals_per_s
        Rate of the Poisson process of arrivals. More than ``most_jobs / mean_duration_s`` make the
        queue grow for ever.
    mean_duration_s
        Mean of the exponential time for which a job runs.
    gpu_fraction, memory_fraction
        Shares of the domain's GPUs and memory that a running job takes.
    most_jobs
        Jobs that may run at a time. Together they must leave something for the training.
    """

    arrivals_per_s: float
    mean_duration_s: float
    gpu_fraction: float
    memory_fraction: float
    most_jobs: int

    def __post_init__(self) -> None:
        owner = "background load"
        require_positive(owner, "arrivals_per_s", self.arrivals_per_s)
        require_positive(owner, "mean_duration_s", self.mean_duration_s)
        require_fraction(owner, "gpu_fraction", self.gpu_fraction)
        require_non_negative(owner, "memory_fraction", self.memory_fraction)
        require_count(owner, "most_jobs", self.most_jobs, MOST_ITEMS)
        for field in ("gpu_fraction", "memory_fraction"):
            taken = self.most_jobs * getattr(self, field)
            if taken >= 1:
                raise ValueError(
                    f"{owner}: {field} times most_jobs must be below 1, so that something is left "
                    f"for the training; got {getattr(self, field)!r} times {self.most_jobs}"
                )


def draw_jobs(load: BackgroundLoad, rng: np.random.Generator) -> Iterator[BackgroundJob]:
    """Draw the jobs of a domain, in the order of arrival, without end."""
    arrival_s = 0.0
    while True:
        arrival_s += float(rng.exponential(1.0 / load.arrivals_per_s))
        yield BackgroundJob(arrival_s, float(rng.exponential(load.mean_duration_s)))


def domain_rng(seed: int, domain: int) -> np.random.Generator:
    """Random numbers of the jobs of a domain, which do not depend on the other domains."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(domain,)))


class Background:
    """The jobs of all domains, as processes on a clock, and the course of the loads.

    ``loads`` holds one entry per domain, None for one without other jobs; without any entry no
    domain has some.
    """

    def __init__(
        self,
        clock: Clock,
        topology: Topology,
        loads: Sequence[BackgroundLoad | ReplayedLoad | None],
        seed: int,
    ) -> None:
        if loads and len(loads) != topology.num_domains:
            raise ValueError(
                f"background: loads must hold one entry for each of {topology.num_domains} "
                f"domains, got {len(loads)}"
            )
        self._clock = clock
        self._change: simpy.Event | None = None
        self._now = [IDLE] * topology.num_domains
        self.samples = [LoadSample.of(0.0, domain, IDLE) for domain in range(topology.num_domains)]
        for domain, load in enumerate(loads):
            if isinstance(load, ReplayedLoad):
                clock.process(self._replay(domain, load))
            elif load is not None:
                slots = simpy.Resource(clock, load.most_jobs)
                jobs = draw_jobs(load, domain_rng(seed, domain))
                clock.process(self._arrivals(domain, load, slots, jobs))

    @property
    def loads(self) -> tuple[DomainLoad, ...]:
        """Loads of all domains now."""
        return tuple(self._now)

    def next_change(self) -> simpy.Event:
        """Event of the next change of any load."""
        if self._change is None:
            self._change = self._clock.event()
        return self._change

    def _arrivals(
        self,
        domain: int,
        load: BackgroundLoad,
        slots: simpy.Resource,
        jobs: Iterator[BackgroundJob],
    ) -> Generator[simpy.Event, None, None]:
        for job in jobs:
            yield self._clock.at(job.arrival_s)
            self._clock.process(self._run(domain, load, slots, job))

    def _run(
        self, domain: int, load: BackgroundLoad, slots: simpy.Resource, job: BackgroundJob
    ) -> Generator[simpy.Event, None, None]:
        """Wait for GPUs, run, and leave them to the next."""
        with slots.request() as turn:
            self._note(domain, load, slots)
            yield turn
            yield self._clock.at(self._clock.now + job.duration_s)
        self._note(domain, load, slots)

    def _note(self, domain: int, load: BackgroundLoad, slots: simpy.Resource) -> None:
        """Write down a load, in which a slot that has just become free has gone to the next job."""
        num_present = slots.count + len(slots.queue)
        running = min(num_present, load.most_jobs)
        now = DomainLoad(
            utilisation=running * load.gpu_fraction,
            memory_occupancy=running * load.memory_fraction,
            queue_length=num_present - running,
        )
        self._set(domain, now)

    def _replay(self, domain: int, load: ReplayedLoad) -> Generator[simpy.Event, None, None]:
        for time_s, now in load.changes:
            yield self._clock.at(time_s)
            self._set(domain, now)

    def _set(self, domain: int, now: DomainLoad) -> None:
        self._now[domain] = now
        self.samples.append(LoadSample.of(self._clock.now, domain, now))
        if self._change is not None:
            self._change.succeed()
            self._change = None


def beside_jobs(topology: Topology, loads: Sequence[DomainLoad]) -> Topology:
    """Return the world as the training finds it: with what other jobs leave of each domain.

    A domain computes at its rate times the share of GPUs that is left, whatever part of them the
    plan uses, and has the share of memory that is left.
    """
    if all(load.utilisation == load.memory_occupancy == 0 for load in loads):
        return topology
    domains = tuple(
        replace(
            domain,
            attainable_fraction=domain.attainable_fraction * (1.0 - load.utilisation),
            gpu_memory_bytes=domain.gpu_memory_bytes * (1.0 - load.memory_occupancy),
        )
        for domain, load in zip(topology.domains, loads, strict=True)
    )
    return replace(topology, domains=domains)
