"""Targets with a measured value, and the verdict on each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

import numpy as np

from scenarios.frame.statistics import MeanInterval, mean_and_interval

Verdict = Literal["exceeded", "met", "missed", "inconclusive", "not measured", "quick"]
"""``exceeded``: past the stretch target; ``inconclusive``: the 95 % interval crosses the target;
``quick``: met in a run too short to claim it."""

Sense = Literal["at least", "at most", "above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The target for a value, and a stricter stretch target.

    Attributes
    ----------
    sense
        Side of the target on which a value must lie; ``at least`` and ``at most`` allow equality.
    target, stretch
        Bounds in the unit of the value; without ``stretch`` the target cannot be exceeded.
    """

    sense: Sense
    target: float
    stretch: float | None = None

    def __post_init__(self) -> None:
        if self.stretch is not None and self.stretch != self.target:
            is_stricter = (self.stretch > self.target) == (self.sense in ("at least", "above"))
            if not is_stricter:
                raise ValueError(
                    f"goal {self.sense}: stretch must be stricter than target {self.target!r}, "
                    f"got {self.stretch!r}"
                )

    def verdict(self, value: float, half_width: float = 0.0) -> Verdict:
        """Judge a value by its whole interval, so that no verdict rests on chance alone.

        Parameters
        ----------
        half_width
            Half the 95 % interval of the value. Where it is unknown (NaN), or 0, the value is
            judged alone.

        Examples
        --------
        >>> goal = Goal(sense="at most", target=0.02, stretch=0.005)
        >>> goal.verdict(0.01), goal.verdict(0.01, half_width=0.015)
        ('met', 'inconclusive')
        """
        if math.isnan(value):
            return "not measured"
        spread = 0.0 if math.isnan(half_width) else half_width
        ends = (value - spread, value + spread)
        if self.stretch is not None and all(self._holds(end, self.stretch) for end in ends):
            return "exceeded"
        held = [self._holds(end, self.target) for end in ends]
        if all(held):
            return "met"
        return "inconclusive" if any(held) else "missed"

    def _holds(self, value: float, bound: float) -> bool:
        return {
            "at least": value >= bound,
            "at most": value <= bound,
            "above": value > bound,
            "below": value < bound,
        }[self.sense]

    def shown(self, unit: "Unit") -> str:
        """Format as the target with the stretch target in brackets."""
        sign = {"at least": ">=", "at most": "<=", "above": ">", "below": "<"}[self.sense]
        stretch = "" if self.stretch is None else f" ({unit.shown(self.stretch)})"
        return f"{sign} {unit.shown(self.target)}{stretch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Unit of shown values: a factor and a name."""

    name: str
    factor: float = 1.0

    def shown(self, value: float) -> str:
        """Show a value to four digits."""
        if not math.isfinite(value):
            return "-"
        number = self.factor * value
        return f"{number:.4g} {self.name}".strip()


PERCENT = Unit(name="%", factor=1e2)
MILLISECONDS = Unit(name="ms", factor=1e3)
TIMES = Unit(name="x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One row of the table.

    Attributes
    ----------
    name
        One or a few words; the same in all columns.
    definition
        Definition of the value, in a sentence.
    reference
        Baseline of the comparison.
    value
        Measured value; NaN where there is none.
    interval
        Mean and half width over worlds or draws; the value need not be the mean, such as a p99,
        and is then judged without it.
    has_fewer_gpus
        Whether the reference has fewer GPUs than the method, which explains a part of the gain.
    is_quick
        Whether too little was measured to claim that the target is met.
    notes
        Remarks needed to read the value, a sentence each.
    values
        Figures behind the mean, in one order for all columns; none where columns have no cases in
        common.
    """

    name: str
    definition: str
    reference: str
    goal: Goal
    value: float
    interval: MeanInterval | None
    unit: Unit = PERCENT
    has_fewer_gpus: bool = False
    is_quick: bool = False
    notes: tuple[str, ...] = ()
    values: tuple[float, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Verdict on the value, by its interval where that is an interval of the value."""
        verdict = self.goal.verdict(self.value, self.half_width)
        return "quick" if self.is_quick and verdict in ("met", "exceeded") else verdict

    @property
    def half_width(self) -> float:
        """Half the 95 % interval of the value; NaN where there is none."""
        if self.interval is None or self.interval.mean != self.value:
            return math.nan
        return self.interval.half_width

    def is_better_than(self, other: "Target") -> bool:
        """Whether a value lies on the better side of another, and their intervals do not touch."""
        spread = sum(one.half_width for one in (self, other) if not math.isnan(one.half_width))
        return self._sign * (self.value - other.value) > spread

    def gain_over(self, other: "Target") -> MeanInterval | None:
        """Mean paired gain over the same target of another method, above 0 where it is better.

        None where the two have no cases in common, or a figure is not finite.
        """
        own, others = np.array(self.values), np.array(other.values)
        if not own.size or own.shape != others.shape or not np.isfinite([own, others]).all():
            return None
        return mean_and_interval(self._sign * (own - others))

    @property
    def _sign(self) -> float:
        return 1.0 if self.goal.sense in ("at least", "above") else -1.0

    @property
    def mark(self) -> str:
        """Verdict, with a star where it is met against a reference that has fewer GPUs."""
        is_met = self.verdict in ("met", "exceeded", "quick")
        return f"{self.verdict}*" if self.has_fewer_gpus and is_met else self.verdict

    def to_plain(self) -> dict[str, object]:
        """Return plain values for JSON; missing figures are null."""
        is_known = self.interval is not None and not math.isnan(self.interval.mean)
        spread = self.interval if is_known else None
        return {
            "name": self.name,
            "definition": self.definition,
            "reference": self.reference,
            "target": self.goal.shown(self.unit),
            "value": _or_none(self.value),
            "mean": None if spread is None else spread.mean,
            "half_width": None if spread is None else _or_none(spread.half_width),
            "verdict": self.verdict,
            "reference_has_fewer_gpus": self.has_fewer_gpus,
            "notes": list(self.notes),
        }


def measured(values: Sequence[float]) -> tuple[float, MeanInterval | None]:
    """Return the mean of values and its interval; NaN and None of none, no interval of infinity.

    Examples
    --------
    >>> measured([0.25, 0.75])[0], measured([0.25, -math.inf])
    (0.5, (-inf, None))
    """
    if not len(values):
        return math.nan, None
    if any(map(math.isinf, values)):  # nothing was done in a course: its time is endless
        return sum({value for value in values if math.isinf(value)}), None
    interval = mean_and_interval(values)
    return interval.mean, interval


class MeanFields(TypedDict):
    """Fields of a `Target` whose value is the mean of its figures."""

    value: float
    interval: MeanInterval | None
    values: tuple[float, ...]


def mean_fields(values: Sequence[float], misfits: Sequence[str] = ()) -> MeanFields:
    """Return the fields of figures; with ``misfits``, plans that do not fit, the target is missed.

    Examples
    --------
    >>> mean_fields([0.5], ("it does not fit",))
    {'value': -inf, 'interval': None, 'values': (0.5,)}
    """
    value, interval = (-math.inf, None) if misfits else measured(values)
    return MeanFields(value=value, interval=interval, values=tuple(values))


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
