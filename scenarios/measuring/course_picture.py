"""Picture of a fitted course: measured intervals and the fitted law."""

import math
from functools import partial

import numpy as np

from des.figures.figure import Figure
from des.figures.marks import Line, Points
from des.figures.palette import colour
from des.figures.panels import Axis, Panel
from scenarios.measuring.courses import FittedCourse


def course_figure(fitted: FittedCourse) -> Figure:
    """Draw the values with the band of the law, their distribution, and their correlation."""
    law = fitted.wander
    sigma = law.bandwidth_sigma
    low, high = (math.exp(sign * 1.96 * sigma - sigma**2 / 2.0) for sign in (-1.0, 1.0))
    ordered = sorted(fitted.factors)
    shares = tuple((place + 0.5) / len(ordered) for place in range(len(ordered)))
    z = np.linspace(-3.0, 3.0, 61)
    normal = tuple(0.5 * (1.0 + math.erf(one / math.sqrt(2.0))) for one in z.tolist())
    ones = (1.0,) * len(fitted.times_s)
    lags_s = (0.0, *fitted.lags_s)
    measured = partial(Points, label="measured", colour=colour(0), size=3.0)
    drawn = partial(Line, label="law", colour=colour(1))
    band = partial(Line, label="95 % of the law", colour=colour(1))
    factor = "bandwidth over mean"
    return Figure(
        name="measured_course",
        title=f"Measured course of {fitted.link} and the law fitted to all",
        seen=fitted.line(),
        panels=(
            Panel(
                x=Axis(label="time [s]"),
                y=Axis(label=factor),
                marks=(
                    band(
                        x=fitted.times_s, y=ones, low=(low,) * len(ones), high=(high,) * len(ones)
                    ),
                    measured(x=fitted.times_s, y=fitted.factors),
                ),
            ),
            Panel(
                x=Axis(label=factor),
                y=Axis(label="share below"),
                marks=(
                    drawn(x=tuple(np.exp(sigma * z - sigma**2 / 2.0).tolist()), y=normal),
                    measured(x=tuple(ordered), y=shares),
                ),
            ),
            Panel(
                x=Axis(label="later by [s]"),
                y=Axis(label="correlation"),
                marks=(
                    drawn(x=lags_s, y=tuple(math.exp(-lag / law.relaxation_s) for lag in lags_s)),
                    measured(x=lags_s, y=(1.0, *fitted.correlations)),
                ),
            ),
        ),
    )
