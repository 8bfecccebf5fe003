"""Ordering by a weighted key, whose weights a policy chooses from time to time."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from des.cluster.live_job import LiveJob
from des.cluster.policy import View

WIDTH_WEIGHTS = (-0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
ATTAINED_WEIGHTS = (-0.5, -0.25, 0.0, 0.25, 0.5)
WAIT_WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Weights to choose from, of the logarithms of a job's GPUs, attained time and time since its
arrival; that of its remaining time is 1."""

CHOICES = (len(WIDTH_WEIGHTS), len(ATTAINED_WEIGHTS), len(WAIT_WEIGHTS))
SHORTEST_REMAINING = (2, 2, 0)
"""Choices under which the ordering is that of the shortest remaining time."""

INTERVAL_S = 3600.0
"""Time between choices."""

_CLASSES = (1, 2, 4, 8)
_HOUR_S = 3600.0
OBSERVATION_SIZE = 5 + 5 * len(_CLASSES)


@dataclass(slots=True, kw_only=True)
class WeightedOrdering:
    """Jobs by ``left * width**a * attained**b / age**c``, the smallest first; it preempts.

    Weights of 0 give the shortest remaining time; a width weight of 1 the least remaining work.
    Run times are known.
    """

    choices: tuple[int, ...] = SHORTEST_REMAINING
    quantum_s: float = 300.0
    preempts: bool = field(default=True, init=False)
    blocks: bool = field(default=False, init=False)
    backfills: bool = field(default=False, init=False)
    changes: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.choose(self.choices)

    def choose(self, choices: Sequence[int]) -> None:
        """Take weights by their numbers.

        Raises
        ------
        ValueError
            If they are not three numbers of weights.
        """
        found = tuple(int(choice) for choice in choices)
        if len(found) != 3 or not all(
            0 <= n < size for n, size in zip(found, CHOICES, strict=True)
        ):
            raise ValueError(
                f"weighted ordering: choices must be three numbers below {CHOICES}, got {choices}"
            )
        self.choices = found

    def prepare(self, view: View) -> None:
        """Keep the weights."""

    def key(self, job: LiveJob, now_s: float) -> float:
        """Logarithm of the weighted product."""
        width, attained, wait = self.choices
        return (
            math.log(job.left_by(now_s) + 1.0)
            + WIDTH_WEIGHTS[width] * math.log(job.width)
            + ATTAINED_WEIGHTS[attained] * math.log1p(job.attained_by(now_s) / _HOUR_S)
            - WAIT_WEIGHTS[wait] * math.log1p((now_s - job.job.arrival_s) / _HOUR_S)
        )


@dataclass(slots=True, kw_only=True)
class HourlyWeights(WeightedOrdering, ABC):
    """Base: weights are chosen again at the first decision of each interval."""

    _chosen_for: float = field(default=-math.inf, init=False)

    def prepare(self, view: View) -> None:
        """Choose weights once per interval."""
        interval = view.now_s // INTERVAL_S
        if interval != self._chosen_for:
            self._chosen_for = interval
            self.choose(self.next_choices(view))

    @abstractmethod
    def next_choices(self, view: View) -> Sequence[int]:
        """Numbers of the weights of an interval, as `choose` takes them."""


def queue_observation(view: View) -> npt.NDArray[np.float32]:
    """Observation of a cluster, shape (OBSERVATION_SIZE,).

    Free GPUs and GPUs wanted over all GPUs, waiting and running jobs, longest time since an
    arrival; then for jobs of up to 1, 2, 4 and more GPUs: waiting ones, mean and least remaining
    time of these, running ones and their mean remaining time. Counts and hours are compressed as
    ``log(1 + x)``.
    """
    now_s = view.now_s
    num_gpus = max(1, view.free.num_present)
    ages_h = [(now_s - job.job.arrival_s) / _HOUR_S for job in view.live_jobs()]
    numbers = [
        view.free.num_free / num_gpus,
        math.log1p(view.demand_gpus / num_gpus),
        math.log1p(len(view.waiting)),
        math.log1p(len(view.running)),
        math.log1p(max(ages_h, default=0.0)),
    ]
    waiting, running = _left_by_class(view, waits=True), _left_by_class(view, waits=False)
    for place in range(len(_CLASSES)):
        here = waiting[place]
        numbers += [
            math.log1p(len(here)),
            math.log1p(sum(here) / max(len(here), 1)),
            math.log1p(min(here, default=0.0)),
            math.log1p(len(running[place])),
            math.log1p(sum(running[place]) / max(len(running[place]), 1)),
        ]
    return np.array(numbers, np.float32)


def _left_by_class(view: View, *, waits: bool) -> list[list[float]]:
    """Remaining hours of jobs by class of width."""
    found: list[list[float]] = [[] for _ in _CLASSES]
    for job in (view.waiting if waits else view.running).values():
        place = min(sum(job.width > most for most in _CLASSES), len(_CLASSES) - 1)
        found[place].append(job.left_by(view.now_s) / _HOUR_S)
    return found
