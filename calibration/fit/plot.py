"""Figure of predicted against reference iteration times."""

from collections.abc import Mapping, Sequence

import numpy as np

from des.figures.figure import Figure
from des.figures.marks import Line, Points, Symbol
from des.figures.palette import BLUE, INK, VERMILION
from des.figures.panels import Axis, Panel

_SERIES: tuple[tuple[str, Symbol], ...] = ((VERMILION, "circle"), (BLUE, "x"))


def predicted_versus_reference(
    reference_s: Sequence[float], predicted_s: Mapping[str, Sequence[float]], *, title: str
) -> Figure:
    """Return predictions by name, at most two, against the reference, and their relative errors.

    Parameters
    ----------
    reference_s, predicted_s
        Iteration times of the same cases. [s]
    title
        One line above both panels.
    """
    assert 1 <= len(predicted_s) <= len(_SERIES)
    reference = np.asarray(reference_s, dtype=float)
    ends = (float(reference.min()), float(reference.max()))
    zero = Line(label="", x=ends, y=(0.0, 0.0), colour=INK, width=0.8)
    times: list[Line | Points] = [Line(label="", x=ends, y=ends, colour=INK, width=0.8)]
    errors: list[Line | Points] = [zero]
    said = []
    for (name, values_s), (hue, symbol) in zip(predicted_s.items(), _SERIES, strict=False):
        predicted = np.asarray(values_s, dtype=float)
        percent = 100.0 * (predicted / reference - 1.0)
        for marks, values in ((times, predicted), (errors, percent)):
            marks.append(
                Points(
                    label=name,
                    x=tuple(reference.tolist()),
                    y=tuple(values.tolist()),
                    colour=hue,
                    symbol=symbol,
                    size=4.0,
                    is_open=symbol != "x",
                    hovers=tuple(
                        f"case {case}: {one:+.2f} %" for case, one in enumerate(percent.tolist())
                    ),
                )
            )
        said.append(f"{name} {np.abs(percent).mean():.2f} % off on the mean")
    x = Axis(label="iteration time of the reference [s]", scale="log")
    return Figure(
        name="predicted_versus_reference",
        title=title,
        seen=f"Iteration times of {len(reference)} cases against those of the reference: "
        f"{', '.join(said)}.",
        panels=(
            Panel(
                x=x,
                y=Axis(label="iteration time of des [s]", scale="log"),
                marks=tuple(times),
                height=3.4,
                grid="both",
            ),
            Panel(
                x=x,
                y=Axis(label="relative error [%]"),
                marks=tuple(errors),
                height=3.4,
                grid="both",
            ),
        ),
        columns=2,
        width=9.0,
    )
