"""Calibration schedule of a training, in its own steps, whatever the clock says."""

from dataclasses import dataclass

from des.base.checks import require_count

LONG_STEPS = 5_000_000
"""A training of that many steps or more is calibrated each time that as many are done."""

SHORT_CALIBRATIONS = 3
"""A shorter one is calibrated so often, before the first step included."""

MOST_LEAD_STEPS = 500_000


def default_interval_steps(total_steps: int) -> int:
    """Steps from one calibration to the next.

    Examples
    --------
    >>> default_interval_steps(1_000_000), default_interval_steps(20_000_000)
    (333333, 5000000)
    """
    if total_steps >= LONG_STEPS:
        return LONG_STEPS
    return max(1, total_steps // SHORT_CALIBRATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """Steps of a training at which it is calibrated: before it, then every ``interval_steps``.

    Half-way between two of them the policy's placements are looked at for drift. What a calibration
    finds takes effect at the end of the first update that is ``lead_steps`` after the order; none
    is ordered that would have no step of training left then.
    """

    total_steps: int
    interval_steps: int
    steps_per_update: int = 1

    def __post_init__(self) -> None:
        require_count("calibration", "total_steps", self.total_steps)
        require_count("calibration", "interval_steps", self.interval_steps)
        require_count("calibration", "steps_per_update", self.steps_per_update)

    @property
    def lead_steps(self) -> int:
        """Steps from an order to when its factors are in force; the time it has to be done in."""
        return min(MOST_LEAD_STEPS, max(1, self.interval_steps // 2))

    def can_order_at(self, step: int) -> bool:
        """Whether factors that are ordered now would still be in force for a step of training.

        Examples
        --------
        >>> timetable = Timetable(total_steps=30, interval_steps=10, steps_per_update=6)
        >>> [timetable.can_order_at(step) for step in (12, 18, 24)]  # for 18, 24 and 30
        [True, True, False]
        """
        num_updates = -(-(step + self.lead_steps) // self.steps_per_update)
        return num_updates * self.steps_per_update < self.total_steps

    def num_due(self, step: int) -> int:
        """Calibrations that were due up to a step, the one before training left out."""
        return step // self.interval_steps

    def num_looks_due(self, step: int) -> int:
        """Times to look for drift up to a step.

        Examples
        --------
        >>> timetable = Timetable(total_steps=30, interval_steps=10)
        >>> [timetable.num_looks_due(step) for step in (4, 5, 14, 15)]
        [0, 1, 1, 2]
        """
        return (2 * step + self.interval_steps) // (2 * self.interval_steps)
