"""Smoothing of measured figures: exponentially weighted means with their spread."""

import math
from dataclasses import dataclass, replace

_JUMP = 4.0
"""Spreads by which two measurements in a row are off, on one side, where a figure has jumped."""

UNMEASURED_SPREAD = 0.1
"""Relative spread that a single measurement is taken to have; an assumption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEstimate:
    """Mean and spread of a positive figure, of its logarithm, after its latest measurement.

    Attributes
    ----------
    time_s
        Time of the latest measurement, since 1970. [s]
    log_mean, log_variance
        Exponentially weighted, so that a measurement counts ``exp(-age / time_constant_s)``.
    sum_of_squares
        Of the weights that the measurements have in the mean: 1 for a single one.
    held_back
        Logarithm of the latest measurement, if it is off so far that it does not count yet.
    """

    time_s: float
    log_mean: float
    log_variance: float = UNMEASURED_SPREAD**2
    sum_of_squares: float = 1.0
    held_back: float | None = None

    @classmethod
    def first(cls, time_s: float, value: float) -> "FigureEstimate":
        """Estimate after one measurement, which replaces what was assumed before."""
        return cls(time_s=time_s, log_mean=math.log(value))

    @property
    def value(self) -> float:
        """The figure: the weighted geometric mean of its measurements."""
        return math.exp(self.log_mean)

    @property
    def log_error(self) -> float:
        """Standard error of the mean of the logarithm: how far the figure may be off, relatively.

        Measurements count as drawn independently around one figure.
        """
        return math.sqrt(self.log_variance * self.sum_of_squares)

    def after(self, time_s: float, value: float, time_constant_s: float) -> "FigureEstimate":
        """Return the estimate after another measurement, of a later time.

        One that is off by more than `_JUMP` spreads does not count if measurements are frequent;
        with a second one on the same side the figure has jumped, and the estimate starts again.

        Examples
        --------
        After one time constant a measurement weighs 63 %:

        >>> known = FigureEstimate.first(0.0, 100.0)
        >>> round(known.after(300.0, 50.0, 300.0).value, 2)
        64.52
        >>> round(known.after(1e9, 50.0, 300.0).value, 9)
        50.0
        """
        share = -math.expm1(-(time_s - self.time_s) / time_constant_s)
        off = math.log(value) - self.log_mean
        spread = max(UNMEASURED_SPREAD, math.sqrt(self.log_variance))
        if share < 0.5 and abs(off) > _JUMP * spread:
            if self.held_back is None:
                return replace(self, time_s=time_s, held_back=math.log(value))
            if (self.held_back > self.log_mean) is (off > 0.0):
                mean = (self.held_back + math.log(value)) / 2.0
                return FigureEstimate(time_s=time_s, log_mean=mean, sum_of_squares=0.5)
        known = (1.0 - share) * (self.log_variance + share * off * off)
        return FigureEstimate(
            time_s=time_s,
            log_mean=self.log_mean + share * off,
            log_variance=known + (share * UNMEASURED_SPREAD) ** 2,
            sum_of_squares=(1.0 - share) ** 2 * self.sum_of_squares + share**2,
        )
