"""Figure of predicted against reference iteration times."""

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Orange and blue of M. Okabe and K. Ito's colour-blind-safe palette.
_COLOURS = ("#D55E00", "#0072B2")
_MARKERS = ("o", "x")
_INK, _FAINT = "#333333", "#D9D9D9"
_WIDTH_INCHES, _HEIGHT_INCHES, _DOTS_PER_INCH = 9.0, 4.4, 150


def predicted_versus_reference_png(
    reference_s: Sequence[float], predicted_s: Mapping[str, Sequence[float]], *, title: str
) -> bytes:
    """Draw predictions by name, at most two, against the reference and their relative errors below.

    Equal figures give equal bytes on the same installation.

    Parameters
    ----------
    reference_s, predicted_s
        Iteration times of the same cases. [s]
    title
        One line above both panels.
    """
    assert 1 <= len(predicted_s) <= len(_COLOURS)
    figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), dpi=_DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    times, errors = figure.subplots(1, 2)
    reference = np.asarray(reference_s, dtype=float)
    for (name, values_s), colour, marker in zip(
        predicted_s.items(), _COLOURS, _MARKERS, strict=False
    ):
        predicted = np.asarray(values_s, dtype=float)
        style = {"color": colour, "marker": marker, "linestyle": "", "markersize": 4, "alpha": 0.7}
        style |= {"markerfacecolor": "none", "label": name}
        times.plot(reference, predicted, **style)
        errors.plot(reference, 100.0 * (predicted / reference - 1.0), **style)
    ends = [float(reference.min()), float(reference.max())]
    times.plot(ends, ends, color=_INK, linewidth=0.8, zorder=0)
    times.set_yscale("log")
    times.set_ylabel("iteration time of des [s]")
    errors.axhline(0.0, color=_INK, linewidth=0.8, zorder=0)
    errors.set_ylabel("relative error [%]")
    for axes in (times, errors):
        _clean(axes)
    times.legend(frameon=False)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    content = io.BytesIO()
    figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()


def _clean(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("iteration time of the reference [s]")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
