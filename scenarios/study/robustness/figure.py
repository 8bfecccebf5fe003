"""Curves of the slowdown over the fluctuation of bandwidths, a panel for each latency jitter."""

import pandas as pd

from agents.planners.names import POLICY
from des.figures.figure import Figure
from des.figures.marks import SYMBOLS, Line
from des.figures.palette import BLUE, COLOURS
from des.figures.panels import Axis, Panel
from scenarios.study.compare.bootstrap import LEAST_WORLDS
from scenarios.study.robustness.methods import replanning

_COLUMNS = 3


def robustness_figure(means: pd.DataFrame) -> Figure:
    """Return the means of `scenarios.study.robustness.curves.means_of`, in percent, with bands.

    Policies and planners that re-plan have whole lines, held plans dashed ones; a band is the 95 %
    interval over worlds, and drawn where there are worlds enough for one to say something.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if means.empty:
        raise ValueError("robustness figure: means must have rows, got none")
    jitters = sorted(set(means["jitter"]))
    furthest = means[means["fluctuation"] == means["fluctuation"].max()]
    worst = furthest.loc[furthest["mean"].idxmax()]
    best = furthest.loc[furthest["mean"].idxmin()]
    columns = min(_COLUMNS, len(jitters))
    return Figure(
        name="robustness",
        title="How much slower training gets as links fluctuate",
        seen=f"Slowdown of {means['method'].nunique()} methods against fluctuations of bandwidth "
        f"up to ±{100 * means['fluctuation'].max():.0f} %, a panel for each of {len(jitters)} "
        f"latency jitters; there {best['method']} is {100 * best['mean']:+.1f} % slower, "
        f"{worst['method']} {100 * worst['mean']:+.1f} %. {_about_bands(means)}",
        panels=tuple(
            _panel(means[means["jitter"] == one], "fluctuation", f"latencies ±{100 * one:.0f} %")
            for one in jitters
        ),
        columns=columns,
        width=max(7.0, 4.2 * columns),
        shares_y=True,
    )


def jitter_figure(means: pd.DataFrame) -> Figure:
    """Return the same means over the jitter of latencies, at the least and largest fluctuation.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if means.empty:
        raise ValueError("jitter figure: means must have rows, got none")
    ends = sorted({means["fluctuation"].min(), means["fluctuation"].max()})
    most = 100 * means["jitter"].max()
    return Figure(
        name="robustness_jitter",
        title="How much slower training gets as latencies jitter",
        seen=f"Slowdown of {means['method'].nunique()} methods against latency jitter up to "
        f"±{most:.0f} %, a panel for each of {len(ends)} fluctuations of bandwidth. "
        f"{_about_bands(means)}",
        panels=tuple(
            _panel(means[means["fluctuation"] == end], "jitter", f"bandwidths ±{100 * end:.0f} %")
            for end in ends
        ),
        columns=len(ends),
        width=max(7.0, 4.2 * len(ends)),
    )


def _has_bands(means: pd.DataFrame) -> bool:
    return int(means["num_worlds"].min()) >= LEAST_WORLDS


def _about_bands(means: pd.DataFrame) -> str:
    if _has_bands(means):
        return "Bands are 95 % intervals over worlds."
    return f"No bands: an interval over fewer than {LEAST_WORLDS} worlds says little."


_AXES = {"fluctuation": "bandwidths ± [%]", "jitter": "latencies ± [%]"}


def _panel(means: pd.DataFrame, over: str, title: str) -> Panel:
    deciding = {POLICY, *replanning()}
    others = COLOURS[1:]
    marks = []
    for place, (name, curve) in enumerate(means.groupby("method", sort=False)):
        ordered = curve.sort_values(over)
        mean = 100.0 * ordered["mean"].to_numpy(dtype=float)
        half = 100.0 * ordered["half_width"].fillna(0.0).to_numpy(dtype=float)
        marks.append(
            Line(
                label=str(name),
                x=tuple((100.0 * ordered[over]).astype(float)),
                y=tuple(mean.tolist()),
                low=tuple((mean - half).tolist()) if _has_bands(means) else (),
                high=tuple((mean + half).tolist()) if _has_bands(means) else (),
                colour=BLUE if name == POLICY else others[place % len(others)],
                dash="solid" if name in deciding else "dash",
                width=2.4 if name == POLICY else 1.4,
                symbol=SYMBOLS[place // len(others) % len(SYMBOLS)],
            )
        )
    return Panel(
        x=Axis(label=_AXES[over]),
        y=Axis(label="slower than on held links [%]"),
        marks=tuple(marks),
        title=title,
        height=3.2,
    )
