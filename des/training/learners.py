"""Learners with clocks of their own, as processes: steps, reports, merges, and failures.

Links stand still, and messages of steps and of merges do not delay each other: each takes as long
as its program does alone. `des.plan.learners.outer_steps` has the same merges without processes.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

import simpy

from des.base.checks import require_positive
from des.clock import MEDIUM, WORKER, Clock
from des.plan.learners import Learners, OuterStep

_NEVER = math.inf, math.inf
"""Outage that does not come. [s]"""


class LearnerHistory(NamedTuple):
    """Merges that ended, and steps that each learner had done when it last waited or failed."""

    outer_steps: tuple[OuterStep, ...]
    num_steps: tuple[int, ...]


def useful_fraction(failures_per_s: float, restart_s: float, step_s: float) -> float:
    """Share of its time in which a learner, or a job of one, does steps that count.

    Failures are a Poisson process; one ends the step under way without result, or begins the
    restart under way again. So a step takes ``e^{λR} (e^{λC} - 1) / λ`` in the mean, for ``λ``
    failures a second, restarts of ``R`` and steps of ``C`` seconds [1]_.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
       dumps", Future Generation Computer Systems 22(3), 2006, with nothing to write.

    Examples
    --------
    >>> round(useful_fraction(0.01, 100.0, 1e-9), 6) == round(math.exp(-1.0), 6)
    True
    """
    step = failures_per_s * step_s
    return step / (math.exp(failures_per_s * restart_s) * math.expm1(step))


def restarts(fails_s: Iterator[float], restart_s: float) -> Iterator[tuple[float, float]]:
    """Outages of failures that each need a restart; one in a restart begins it again. [s]

    Examples
    --------
    >>> outages_s = restarts(iter([2.5, 5.0, 12.0, 99.0]), 4.0)
    >>> next(outages_s), next(outages_s)
    ((2.5, 9.0), (12.0, 16.0))
    """
    fail_s = next(fails_s, math.inf)
    while True:
        back_s, later_s = fail_s + restart_s, next(fails_s, math.inf)
        while later_s < back_s:
            back_s, later_s = later_s + restart_s, next(fails_s, math.inf)
        yield fail_s, back_s
        fail_s = later_s


def run_learners(
    learners: Learners,
    until_s: float,
    *,
    outages_s: Sequence[Iterator[tuple[float, float]]] = (),
) -> LearnerHistory:
    """Let learners train until a time.

    Parameters
    ----------
    outages_s
        When each learner fails and when it can begin a step again, one after the other, see
        `restarts`; none: none fails. The step under way then is lost. [s]

    Raises
    ------
    ValueError
        If a time is out of range or an outage before another, or outages are of other learners.
    """
    require_positive("learners", "until_s", until_s)
    if outages_s and len(outages_s) != len(learners.step_s):
        raise ValueError(
            f"learners: outages_s must be of each of {len(learners.step_s)}, got {len(outages_s)}"
        )
    run = _Run(learners, outages_s)
    run.clock.run(until=run.clock.at(until_s))
    return LearnerHistory(tuple(run.outer_steps), tuple(run.num_steps))


class _Run:
    """Processes of the learners and of their syncers, and what they leave behind."""

    def __init__(
        self, learners: Learners, outages_s: Sequence[Iterator[tuple[float, float]]]
    ) -> None:
        self.clock, self._learners, self._mode = Clock(), learners, learners.mode
        self._outages, count = outages_s, len(learners.step_s)
        self._outage_s = [next(one, _NEVER) for one in outages_s] or [_NEVER] * count
        self.num_steps = [0] * count
        self.outer_steps: list[OuterStep] = []
        self._reports: list[tuple[float, int, simpy.Event]] = []
        self._quorum, self._all = self.clock.event(), self.clock.event()
        for learner in range(count):
            self.clock.process(self._learn(learner))
        self.clock.process(self._merge())

    def _learn(self, learner: int) -> Generator[simpy.Event, None, None]:
        """Do the steps of a period and report; continue for some, then wait for the merge."""
        mode = self._mode
        yield from self._steps(learner, mode.steps_between)
        while True:
            merged = self._report(learner)
            yield from self._steps(learner, mode.overlap_steps)
            yield merged
            yield from self._steps(learner, mode.steps_between - mode.overlap_steps)

    def _report(self, learner: int) -> simpy.Event:
        merged = self.clock.event()
        self._reports.append((self.clock.now, learner, merged))
        if len(self._reports) == self._mode.quorum:
            self._quorum.succeed()
        if len(self._reports) == len(self.num_steps):
            self._all.succeed()
        return merged

    def _merge(self) -> Generator[simpy.Event, None, None]:
        """Merge whenever a quorum has reported and the grace window is over."""
        clock, mode, step_s = self.clock, self._mode, self._learners.step_s
        while True:
            yield self._quorum
            completed_s, last, _ = self._reports[mode.quorum - 1]
            due_s = completed_s + mode.grace_steps * step_s[last]
            if clock.now < due_s and not self._all.triggered:
                yield clock.at(due_s) | self._all
            yield clock.at(clock.now, MEDIUM)  # who reports at this moment is part of it
            begin_s, reports, self._reports = clock.now, self._reports, []
            self._quorum, self._all = clock.event(), clock.event()
            yield clock.at(begin_s + self._learners.merge_s, MEDIUM)
            reports_s = [math.inf] * len(step_s)
            for reported_s, learner, merged in reports:
                reports_s[learner] = reported_s
                merged.succeed()
            self.outer_steps.append(OuterStep(begin_s, clock.now, tuple(reports_s)))

    def _steps(self, learner: int, count: int) -> Generator[simpy.Event, None, None]:
        """Do steps one after the other; each that fails is done again after a restart."""
        clock, step_s, left = self.clock, self._learners.step_s[learner], count
        while left > 0:
            end_s, whole = clock.now, 0
            while whole < left and end_s + step_s <= self._outage_s[learner][0]:
                end_s, whole = end_s + step_s, whole + 1
            yield clock.at(end_s if whole else self._back_s(learner), WORKER + learner)
            self.num_steps[learner] += whole
            left -= whole

    def _back_s(self, learner: int) -> float:
        """End of the next outage, or now where it is over. [s]"""
        _, back_s = self._outage_s[learner]
        self._outage_s[learner] = fail_s, until_s = next(self._outages[learner], _NEVER)
        if not back_s <= fail_s <= until_s:
            raise ValueError(
                f"learners: outages_s must follow each other, got one from {fail_s!r} to "
                f"{until_s!r} s after one until {back_s!r} s"
            )
        return max(back_s, self.clock.now)
