"""A target: what was asked, what was measured, and whether that is enough."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scenarios.frame.statistics import MeanInterval, mean_and_interval

Verdict = Literal["beyond", "reached", "missed", "not measured"]
"""``beyond`` is the stricter of the two figures that were asked for."""

Sense = Literal["at least", "at most", "above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which values are enough.

    Attributes
    ----------
    sense
        On which side of the figures a value must lie; ``at least`` and ``at most`` allow equality.
    reach, beyond
        Figures, in the unit of the value; without ``beyond`` the target cannot be passed by more.
    """

    sense: Sense
    reach: float
    beyond: float | None = None

    def __post_init__(self) -> None:
        if self.beyond is not None and self.beyond != self.reach:
            is_stricter = (self.beyond > self.reach) == (self.sense in ("at least", "above"))
            if not is_stricter:
                raise ValueError(
                    f"asked {self.sense}: beyond must be stricter than reach {self.reach!r}, "
                    f"got {self.beyond!r}"
                )

    def verdict(self, value: float) -> Verdict:
        """Judge a value.

        Examples
        --------
        >>> Asked(sense="at most", reach=0.02, beyond=0.005).verdict(0.01)
        'reached'
        """
        if math.isnan(value):
            return "not measured"
        if self.beyond is not None and self._holds(value, self.beyond):
            return "beyond"
        return "reached" if self._holds(value, self.reach) else "missed"

    def _holds(self, value: float, figure: float) -> bool:
        return {
            "at least": value >= figure,
            "at most": value <= figure,
            "above": value > figure,
            "below": value < figure,
        }[self.sense]

    def shown(self, unit: "Unit") -> str:
        """Say it in a few characters."""
        sign = {"at least": ">=", "at most": "<=", "above": ">", "below": "<"}[self.sense]
        beyond = "" if self.beyond is None else f" ({unit.shown(self.beyond)})"
        return f"{sign} {unit.shown(self.reach)}{beyond}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """How values are shown: times a factor, with a name behind."""

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
        In one or a few words; the same in all columns.
    definition
        What the value is, in a sentence.
    reference
        What it is compared with.
    value
        What was measured; NaN where nothing was.
    interval
        Mean and half width over worlds or draws; the value need not be the mean, such as a p99.
    has_fewer_gpus
        Whether the reference has fewer GPUs than the method, so that a part of the gain is theirs.
    notes
        What else must be known to read the value, a sentence each.
    """

    name: str
    definition: str
    reference: str
    asked: Asked
    value: float
    interval: MeanInterval | None
    unit: Unit = PERCENT
    has_fewer_gpus: bool = False
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether it is enough."""
        return self.asked.verdict(self.value)

    @property
    def mark(self) -> str:
        """The verdict, with a star where it is met against a reference that has fewer GPUs."""
        is_met = self.verdict in ("reached", "beyond")
        return f"{self.verdict}*" if self.has_fewer_gpus and is_met else self.verdict

    def to_plain(self) -> dict[str, object]:
        """Return plain values for JSON; what was not measured is null."""
        is_known = self.interval is not None and not math.isnan(self.interval.mean)
        spread = self.interval if is_known else None
        return {
            "name": self.name,
            "definition": self.definition,
            "reference": self.reference,
            "asked": self.asked.shown(self.unit),
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
    >>> measured([0.25, 0.75])[0]
    0.5
    """
    if not len(values):
        return math.nan, None
    if math.inf in values:
        return math.inf, None
    interval = mean_and_interval(values)
    return interval.mean, interval


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
