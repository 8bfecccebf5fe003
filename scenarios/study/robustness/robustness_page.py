"""Report and pictures of the robustness curves."""

import pandas as pd

from agents.planners.names import POLICY
from des.figures.figure import Figure
from des.figures.marks import SYMBOLS, Line
from des.figures.palette import BLUE, COLOURS
from des.figures.panels import Axis, Panel
from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.study.compare.bootstrap import LEAST_WORLDS
from scenarios.study.robustness.curves import means_of, relative_times, replanning
from scenarios.study.trained_plans import example_views
from scenarios.suites import SuiteWorld


def robustness_report(frame: pd.DataFrame, world: SuiteWorld, repeat: Repetition) -> Report:
    """Return the report: how much slower training gets, by method, as links fluctuate.

    Parameters
    ----------
    frame
        Rows of `scenarios.study.robustness.curves.robustness_rows`.
    world
        World whose map and plan stand on the first screen.
    """
    means = means_of(frame)
    most = means["fluctuation"].max(), means["jitter"].max()
    furthest = means[(means["fluctuation"] == most[0]) & (means["jitter"] == most[1])]
    ordered = furthest.sort_values("mean", kind="stable")
    best, last = ordered.iloc[0], ordered.iloc[-1]
    views = example_views(world)
    swings = means[["fluctuation", "jitter"]].drop_duplicates()
    return Report(
        title="Robustness against links that fluctuate",
        question=f"How much slower does training get with bandwidths ±{100 * most[0]:.0f} % and "
        f"latencies ±{100 * most[1]:.0f} % than on links that stand still?",
        answer=f"{best['method']} {100 * best['mean']:+.2f} %, the least of {len(ordered)} "
        f"methods; {last['method']} {100 * last['mean']:+.2f} %, the most.",
        repeat=repeat,
        first=views.first,
        tables=(
            PageTable(
                title="Slowdown at the largest fluctuation",
                head=("method", "slower [%]", "± [%]", "worlds"),
                rows=tuple(
                    (
                        str(row["method"]),
                        f"{100 * row['mean']:+.2f}",
                        f"{100 * row['half_width']:.2f}",
                        str(row["num_worlds"]),
                    )
                    for row in ordered.to_dict("records")
                ),
                notes=("± is half the 95 % interval over worlds; nan of one world.",),
            ),
            _times(frame, str(best["method"])),
        ),
        figures=(robustness_figure(means), jitter_figure(means), *views.more),
        caveats=(
            f"{PERFECT_DEVICES.capitalize()}.",
            f"{len(swings)} fluctuations; the map and the plan are of {world.name}.",
        ),
    )


def _times(frame: pd.DataFrame, unit: str) -> PageTable:
    """Times themselves: a flat curve may be of a slow plan."""
    table = relative_times(frame, unit)
    return PageTable(
        title=f"Time over that of {unit} on links that stand still",
        head=("method", *(f"±{100 * float(str(one)):.0f} %" for one in table)),
        rows=tuple(
            (str(name), *(f"{value:.3g}" for value in row))
            for name, row in zip(table.index, table.to_numpy().tolist(), strict=True)
        ),
        notes=("Columns are fluctuations of bandwidths, at the largest jitter of latencies.",),
    )


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
