"""Protocols of a scheduler's parts: admission, ordering, placing, preemption, prices, metrics."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from des.cluster.free_gpus import Allocation, FreeCounts
from des.cluster.history import History
from des.cluster.live_job import LiveJob


@dataclass(slots=True, kw_only=True)
class View:
    """The cluster as policies see it at a decision; its parts are the engine's own, to be read.

    Attributes
    ----------
    free
        Free GPUs by node, before the decision.
    running, waiting
        Admitted jobs that hold GPUs and that do not, by number.
    demand_gpus
        GPUs that all admitted unfinished jobs are to have.
    """

    now_s: float
    free: FreeCounts
    running: Mapping[int, LiveJob]
    waiting: Mapping[int, LiveJob]
    demand_gpus: int = 0

    def live_jobs(self) -> Iterable[LiveJob]:
        """Admitted unfinished jobs, running ones first."""
        yield from self.running.values()
        yield from self.waiting.values()


class Decision(NamedTuple):
    """Answer of a policy: jobs suspended, then jobs launched with their GPUs, each in order."""

    suspended: Sequence[LiveJob]
    launched: Sequence[tuple[LiveJob, Allocation]]


class Admission(Protocol):
    """Rule by which arrived jobs join the queue."""

    def admit(self, view: View, arrived: deque[LiveJob]) -> list[LiveJob]:
        """Remove the jobs that are admitted now from those that have arrived, and return them."""


class Ordering(Protocol):
    """Rule by which live jobs are put in order.

    Notes
    -----
    With ``preempts`` a waiting job may take the GPUs of running ones with a larger key, every
    ``quantum_s``, never earlier than that after their launch and not within its restart. With
    ``blocks`` a waiting job that finds no GPUs stops those behind it, apart from those that do not
    delay it where ``backfills``. With ``changes`` all keys are computed at each decision, else when
    a job begins to wait.
    """

    @property
    def preempts(self) -> bool:
        """Whether waiting jobs may take GPUs of running ones."""

    @property
    def blocks(self) -> bool:
        """Whether the first job that does not fit stops the others."""

    @property
    def backfills(self) -> bool:
        """Whether others may pass it."""

    @property
    def changes(self) -> bool:
        """Whether keys of waiting jobs change."""

    @property
    def quantum_s(self) -> float:
        """Time between decisions that may preempt. [s]"""

    def prepare(self, view: View) -> None:
        """Look at the cluster before keys are computed; may change widths of elastic jobs."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Key of a job now; smaller goes first, equal ones by number."""


class Placing(Protocol):
    """Rule by which a job finds its GPUs among the free ones."""

    def place(self, free: FreeCounts, job: LiveJob) -> Allocation | None:
        """GPUs for all of a job, or None; takes none of them."""


class Preempting(Protocol):
    """Rule by which running jobs give way to one that finds no GPUs.

    Where it ``moves``, jobs of any key may be chosen, under any ordering, and each of them gets
    other GPUs at once; else they wait.
    """

    @property
    def moves(self) -> bool:
        """Whether the jobs chosen move and do not wait."""

    def victims(
        self, view: View, job: LiveJob, candidates: Sequence[LiveJob], placing: Placing
    ) -> Sequence[LiveJob]:
        """Choose jobs whose GPUs would let the job run; none if there is no such choice.

        ``candidates`` come in the order of their keys, last of the order first.
        """


class Traffic(NamedTuple):
    """Bytes that a job sends over links, by (source, target) domain.

    ``per_service_s`` is for each second of its service at rate 1, ``of_launch`` for its launch.
    """

    per_service_s: Mapping[tuple[str, str], float]
    of_launch: Mapping[tuple[str, str], float]


class Pricing(Protocol):
    """Price of a placement: service per second, the time that a launch costs, bytes on links."""

    def rates(self, running: Mapping[int, LiveJob], free: FreeCounts) -> Mapping[int, float] | None:
        """Rates of the running jobs whose rates depend on others; None if no rate ever does."""

    def rate(self, job: LiveJob, free: FreeCounts) -> float:
        """Service per second of a job on the GPUs that it holds."""

    def restart_s(self, job: LiveJob, free: FreeCounts) -> float:
        """Time from a launch to the first iteration: 0 for a first launch. [s]"""

    def traffic(self, job: LiveJob, free: FreeCounts) -> Traffic | None:
        """Bytes of a job on the GPUs that it holds; None if it uses no links."""


class Metric(Protocol):
    """A figure of a history."""

    def __call__(self, history: History, /) -> float:
        """Compute the figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A scheduler put together from its parts."""

    admission: Admission
    ordering: Ordering
    placing: Placing
    preempting: Preempting | None = None


Watch = Callable[[View, Decision], None]
"""Called after every decision that changes something."""
