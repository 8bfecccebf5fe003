"""What all columns have measured, and what several training seeds come to."""

import math
from dataclasses import dataclass

from scenarios.frame.statistics import mean_and_interval
from scenarios.measure.targets.target import Asked, Target

LEGEND = (
    "± is half a 95 % interval over worlds, or over the draws of one world. * the reference has "
    "fewer GPUs, so that a part of the gain is theirs; see the figure at equal GPUs."
)

SEEDS = "training seeds"
SPREAD_FIGURE = "training time"
_MOST_SPREAD = 0.01


@dataclass(frozen=True, kw_only=True)
class MeasuredTargets:
    """Targets of all columns, in the same order in each.

    Attributes
    ----------
    are_seeds
        Whether the columns are one training from several seeds, to be judged together.
    """

    columns: tuple[str, ...]
    targets: tuple[tuple[Target, ...], ...]
    are_seeds: bool = True

    @property
    def rows(self) -> list[tuple[Target, ...]]:
        """The same target in all columns."""
        return list(zip(*self.targets, strict=True))

    @property
    def has_seeds(self) -> bool:
        """Whether there are several seeds."""
        return self.are_seeds and len(self.columns) > 1

    def to_plain(self, scope_note: str) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "scope": scope_note,
            "columns": {
                name: [target.to_plain() for target in targets]
                for name, targets in zip(self.columns, self.targets, strict=True)
            },
            "seeds": spread_of_seeds(self).to_plain() if self.has_seeds else None,
        }

    @property
    def missed(self) -> list[str]:
        """Names of targets that a column misses."""
        return [row[0].name for row in self.rows if any(one.verdict == "missed" for one in row)]


def spread_of_seeds(measured: MeasuredTargets) -> Target:
    """Judge several training seeds together: all have to reach what is asked, and lie close.

    The value is the range of the mean time against one domain over its mean.
    """
    rows = {row[0].name: row for row in measured.rows}
    times = [1.0 - one.value for one in rows.get(SPREAD_FIGURE, ())]
    is_known = len(times) > 1 and all(map(math.isfinite, times))
    value = (max(times) - min(times)) / (sum(times) / len(times)) if is_known else math.nan
    shown = f"{len(measured.columns)} of 5 seeds; "
    return Target(
        name=SEEDS,
        definition="range over the seeds of the mean time against one domain, over its mean; all "
        "seeds have to reach every target",
        reference="the seeds among themselves",
        asked=Asked(sense="below", reach=_MOST_SPREAD),
        value=value if not measured.missed else (math.nan if math.isnan(value) else math.inf),
        interval=mean_and_interval(times) if is_known else None,
        notes=(
            shown
            + (
                f"missed by one at least: {', '.join(measured.missed)}"
                if measured.missed
                else "all reach what is asked"
            ),
        ),
    )


def value_of(target: Target) -> str:
    """Show the value with half its 95 % interval, which is about the mean."""
    shown = target.unit.shown(target.value)
    interval = target.interval
    if interval is None or math.isnan(interval.half_width) or interval.mean != target.value:
        return shown
    return f"{shown} ± {short(target.unit.factor * interval.half_width)}"


def short(half_width: float) -> str:
    """Show half an interval to two digits.

    Examples
    --------
    >>> short(123.4), short(0.0123)
    ('123', '0.012')
    """
    return f"{half_width:.0f}" if half_width >= 10.0 else f"{half_width:.2g}"
