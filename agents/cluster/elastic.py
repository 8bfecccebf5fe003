"""Orderings that choose how many GPUs an elastic job has: Optimus and Pollux."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from agents.cluster.speed_fit import PROFILED_GPUS, fit_speed_curve
from des.base.checks import require_positive
from des.cluster.live_job import LiveJob
from des.cluster.policy import View
from des.cluster.quantum import is_tick
from des.cluster.queued_job import SpeedCurve

RESIZE_QUANTUM_S = 600.0
"""Default time between choices of widths, as a change costs a restart. [s]"""


@dataclass(slots=True, kw_only=True)
class _Elastic(ABC):
    """Base: widths of all elastic jobs are chosen again every quantum, in order of arrival."""

    quantum_s: float = RESIZE_QUANTUM_S
    preempts: bool = False
    blocks: bool = False
    backfills: bool = False
    changes: bool = True
    _chosen_at_s: float = field(default=-1.0, init=False)

    def __post_init__(self) -> None:
        require_positive(type(self).__name__, "quantum_s", self.quantum_s)

    def prepare(self, view: View) -> None:
        """Choose widths at a quantum; in between new jobs have the least that they can use."""
        if not is_tick(view.now_s, self.quantum_s) and self._chosen_at_s >= 0:
            for job in view.waiting.values():
                if job.launches == 0 and job.job.curve is not None:
                    job.width = job.job.curve.least_gpus
            return
        self._chosen_at_s = view.now_s
        jobs = sorted(view.live_jobs(), key=lambda job: (job.job.arrival_s, job.number))
        gain = self._gain(view.now_s)
        widths = greedy_widths(jobs, view.free.num_present, gain)
        for job, width in zip(jobs, widths, strict=True):
            job.width = width

    def key(self, job: LiveJob, now_s: float) -> float:
        """Time of arrival."""
        return job.job.arrival_s

    @abstractmethod
    def _gain(self, now_s: float) -> Callable[[LiveJob, int], float]:
        """Gain of a job by one more GPU than a number."""


@dataclass(slots=True, kw_only=True)
class Optimus(_Elastic):
    """GPUs to the jobs whose remaining time falls most (Optimus, EuroSys'18).

    The speed of a job is a curve fitted to its speeds on a few numbers of GPUs.
    """

    _curve_of: dict[SpeedCurve, SpeedCurve] = field(default_factory=dict, init=False)

    def _gain(self, now_s: float) -> Callable[[LiveJob, int], float]:
        def gain(job: LiveJob, width: int) -> float:
            curve, own = self._fit(job), job.job.num_gpus
            left_s = job.left_by(now_s)
            return left_s / curve.speed(width, own) - left_s / curve.speed(width + 1, own)

        return gain

    def _fit(self, job: LiveJob) -> SpeedCurve:
        true = job.job.curve
        assert true is not None
        if true not in self._curve_of:
            widths = [width for width in PROFILED_GPUS if width <= true.most_gpus] or [1]
            times = [1.0 / true.speed(width, 1) for width in widths]
            self._curve_of[true] = fit_speed_curve(widths, times, like=true)
        return self._curve_of[true]


@dataclass(slots=True, kw_only=True)
class Pollux(_Elastic):
    """GPUs to the jobs whose goodput rises most, relative to that on their own number.

    Goodput is throughput times statistical efficiency (Pollux, OSDI'21); the sum over jobs is
    what the greedy choice makes large.
    """

    def _gain(self, now_s: float) -> Callable[[LiveJob, int], float]:
        def gain(job: LiveJob, width: int) -> float:
            curve, own = job.job.curve, job.job.num_gpus
            assert curve is not None
            return curve.goodput(width + 1, own) - curve.goodput(width, own)

        return gain


def greedy_widths(
    jobs: Sequence[LiveJob], num_gpus: int, gain: Callable[[LiveJob, int], float]
) -> list[int]:
    """Numbers of GPUs of jobs: the least for each in order, then one by one where it gains most.

    A rigid job has its own number or none. No GPU is given where it gains nothing.
    """
    widths, left = [], num_gpus
    for job in jobs:
        curve = job.job.curve
        least = job.job.num_gpus if curve is None else curve.least_gpus
        widths.append(least if least <= left else 0)
        left -= widths[-1]
    gains = [
        (-gain(job, width), place)
        for place, (job, width) in enumerate(zip(jobs, widths, strict=True))
        if width and job.job.curve is not None and width < job.job.curve.most_gpus
    ]
    heapify(gains)
    while left and gains:
        loss, place = heappop(gains)
        if loss >= 0:
            break
        widths[place] += 1
        left -= 1
        curve = jobs[place].job.curve
        if curve is not None and widths[place] < curve.most_gpus:
            heappush(gains, (-gain(jobs[place], widths[place]), place))
    return widths
