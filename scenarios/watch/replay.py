"""A recorded day, replayed: what a watch would have decided, and a picture of it."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from agents.replanning.observed_world import WorldObservation
from agents.replanning.stay_or_move import short_time
from agents.replanning.watch import Action, Watch, WatchVerdict
from des.figures.figure import Figure
from des.figures.marks import Line, Mark, Stripe
from des.figures.palette import BLUE, ORANGE
from des.figures.panels import Axis, Panel

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDecision:
    """One decision of a replayed day.

    Attributes
    ----------
    step_s
        Time of a step of the plan then in force; NaN where none can run. [s]
    lost_s
        Time that staying has lost, against the plan against which it is most. [s]
    still_s
        Time for which the training stands still. [s]
    """

    time_s: float
    action: Action
    step_s: float
    lost_s: float = 0.0
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
                lost_s=max([one.lost_s for one in watch.others.plans], default=0.0),
                still_s=verdict.cost.total_s,
                searched=verdict.searched,
            )
        )
    return WatchedDay(moments=tuple(moments))


def day_figure(day: WatchedDay) -> Figure:
    """Return the step in force and what staying had lost over the time of a day."""
    begin_s = day.moments[0].time_s
    hours = tuple((one.time_s - begin_s) / _HOUR_S for one in day.moments)
    steps, lost_s = (
        tuple(getattr(one, name) for one in day.moments) for name in ("step_s", "lost_s")
    )
    changes = tuple(_stripes(day, begin_s))
    curves: dict[str, Mark] = {
        "step of the plan in force [s]": Line(label="", x=hours, y=steps, colour=BLUE),
        "time that staying has lost [s]": Line(label="", x=hours, y=lost_s, colour=ORANGE),
    }
    return Figure(
        name="watched_day",
        title="What the watch would have decided",
        seen=f"{day.summary}; grey where the training stands still for a change.",
        panels=tuple(
            Panel(
                x=Axis(label="time [h]", low=0.0, high=max(hours[-1], 1e-3)),
                y=Axis(low=0.0, high=None if any(one > 0 for one in _values(curve)) else 1.0),
                marks=(*changes, curve),
                title=title,
                height=1.8,
            )
            for title, curve in curves.items()
        ),
        width=9.0,
        shares_x=True,
    )


def _values(mark: Mark) -> Sequence[float]:
    return mark.y if isinstance(mark, Line) else ()


def _stripes(day: WatchedDay, begin_s: float) -> Iterator[Stripe]:
    for one in day.changes:
        start = (one.time_s - begin_s) / _HOUR_S
        yield Stripe(start=start, end=start + max(one.still_s, 1.0) / _HOUR_S)
