"""A recorded day, replayed: what a watch would have decided, and a picture of it."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from agents.replanning.observed_world import WorldObservation
from agents.replanning.stay_or_move import short_time
from agents.replanning.watch import Action, Watch, WatchVerdict
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Line, Stripe
from des.figures.palette import BLUE, ORANGE
from des.figures.panels import Axis

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDecision:
    """One decision of a replayed day.

    Attributes
    ----------
    step_s
        Time of a step of the plan then in force; NaN where none can run. [s]
    quickest_s
        That of the quickest plan that was known when plans were judged last; NaN without any. [s]
    still_s
        Time for which the training stands still. [s]
    """

    time_s: float
    action: Action
    step_s: float
    quickest_s: float = math.nan
    still_s: float = 0.0
    searched: str = ""


@dataclass(frozen=True, kw_only=True)
class WatchedDay:
    """Decisions of a day, in order."""

    moments: tuple[ReplayedDecision, ...]

    @property
    def changes(self) -> tuple[ReplayedDecision, ...]:
        """Decisions that change the plan, the first plan left out."""
        return tuple(one for one in self.moments if one.action in ("move", "rebind"))

    @property
    def summary(self) -> str:
        """The day in one sentence."""
        span_s = self.moments[-1].time_s - self.moments[0].time_s
        still_s = sum(one.still_s for one in self.changes)
        num_searched = sum(bool(one.searched) for one in self.moments)
        return (
            f"{len(self.moments)} decisions over {short_time(span_s)}: {len(self.changes)} "
            f"changes of plan, for which the training stands still for {short_time(still_s)}; "
            f"{num_searched} searches"
        )


def replay_day(
    watch: Watch,
    observations: Sequence[WorldObservation],
    *,
    decided: Callable[[WatchVerdict], None],
    complain: Callable[[str], None],
) -> WatchedDay:
    """Decide at each time at which something was observed, as the watch would have then.

    Parameters
    ----------
    decided
        Takes each verdict.
    complain
        Takes a line for each observation of an unknown link or site, which is left out.

    Raises
    ------
    ValueError
        If there are no observations.
    """
    if not observations:
        raise ValueError("dry run: must have at least one observation, got none")
    moments = []
    ordered = sorted(observations, key=lambda one: one.time_s)
    for time_s, seen in groupby(ordered, key=lambda one: one.time_s):
        for one in seen:
            try:
                watch.take(one)
            except ValueError as error:
                complain(str(error))
        verdict = watch.decide(time_s)
        decided(verdict)
        moments.append(
            ReplayedDecision(
                time_s=time_s,
                action=verdict.action,
                step_s=math.nan if verdict.plan is None else verdict.plan.step_s,
                quickest_s=min(
                    (one.step_s for one in watch.others.plans if one.step_s), default=math.nan
                ),
                still_s=verdict.cost.total_s,
                searched=verdict.searched,
            )
        )
    return WatchedDay(moments=tuple(moments))


def day_figure(day: WatchedDay) -> Figure:
    """Return the step in force, and that of the quickest known plan, over the time of a day."""
    begin_s = day.moments[0].time_s
    hours = tuple((one.time_s - begin_s) / _HOUR_S for one in day.moments)
    in_force, quickest = (
        tuple(getattr(one, name) for one in day.moments) for name in ("step_s", "quickest_s")
    )
    return panel_figure(
        name="watched_day",
        title="What the watch would have decided",
        seen=f"{day.summary}; grey where the training stands still for a change.",
        x=Axis(label="time [h]", low=0.0, high=max(hours[-1], 1e-3)),
        y=Axis(label="step [s]", low=0.0),
        marks=(
            *_stripes(day, begin_s),
            Line(label="quickest known plan", x=hours, y=quickest, colour=ORANGE),
            Line(label="plan in force", x=hours, y=in_force, colour=BLUE),
        ),
        width=9.0,
    )


def _stripes(day: WatchedDay, begin_s: float) -> Iterator[Stripe]:
    for one in day.changes:
        start = (one.time_s - begin_s) / _HOUR_S
        yield Stripe(start=start, end=start + max(one.still_s, 1.0) / _HOUR_S)
