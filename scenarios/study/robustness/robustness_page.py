"""Report of the robustness curves."""

from collections.abc import Mapping

import pandas as pd

from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.frame.report import PageTable, Report
from scenarios.study.example_plan import example_views
from scenarios.study.robustness.curves import means_of, relative_times
from scenarios.study.robustness.figure import jitter_figure, robustness_figure
from scenarios.suites import SuiteWorld


def robustness_report(
    frame: pd.DataFrame, world: SuiteWorld, configuration: Mapping[str, object], command: str
) -> Report:
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
        command=command,
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
        configuration=configuration,
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
