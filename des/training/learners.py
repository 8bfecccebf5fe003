"""Learners with clocks of their own, as processes: steps, reports, merges, and failures.

Links stand still, and messages of steps and of merges do not delay each other: each takes as long
as its program does alone. `des.plan.learners.outer_steps` has the same merges without processes.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

import simpy

from des.base.checks import require_non_negative, require_positive
from des.clock import MEDIUM, WORKER, Clock
from des.plan.learners import Learners, OuterStep


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


def run_learners(
    learners: Learners,
    until_s: float,
    *,
    fails_s: Sequence[Iterator[float]] = (),
    restart_s: float = 0.0,
) -> LearnerHistory:
    """Let learners train until a time.

    Parameters
    ----------
    fails_s
        Times of failures of each learner, ascending, without end; none: none fails. A failure ends
        the step under way without result, or begins the restart under way again. [s]
    restart_s
        From a failure until the learner begins a step again. [s]

    Raises
    ------
    ValueError
        If a time is out of range, or failures are of other learners.
    """
    require_positive("learners", "until_s", until_s)
    require_non_negative("learners", "restart_s", restart_s)
    if fails_s and len(fails_s) != len(learners.step_s):
        raise ValueError(
            f"learners: fails_s must be of each of {len(learners.step_s)}, got {len(fails_s)}"
        )
    run = _Run(learners, fails_s, restart_s)
    run.clock.run(until=run.clock.at(until_s))
    return LearnerHistory(tuple(run.outer_steps), tuple(run.num_steps))


class _Run:
    """Processes of the learners and of their syncers, and what they leave behind."""

    def __init__(
        self, learners: Learners, fails_s: Sequence[Iterator[float]], restart_s: float
    ) -> None:
        self.clock, self._learners, self._mode = Clock(), learners, learners.mode
        self._fails, self._restart_s, count = fails_s, restart_s, len(learners.step_s)
        self._fail_s = [next(one) for one in fails_s] or [math.inf] * count
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
            while whole < left and end_s + step_s <= self._fail_s[learner]:
                end_s, whole = end_s + step_s, whole + 1
            yield clock.at(end_s if whole else self._restarted_s(learner), WORKER + learner)
            self.num_steps[learner] += whole
            left -= whole

    def _restarted_s(self, learner: int) -> float:
        """End of a restart, which failures begin again. [s]"""
        while True:
            ready_s = self._fail_s[learner] + self._restart_s
            self._fail_s[learner] = next(self._fails[learner])
            if self._fail_s[learner] >= ready_s:
                return max(ready_s, self.clock.now)
