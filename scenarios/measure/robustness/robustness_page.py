"""Report of the robustness curves."""

from collections.abc import Mapping

import pandas as pd

from scenarios.frame.report import PageTable, Report
from scenarios.measure.example_plan import example_views
from scenarios.measure.robustness.figure import robustness_figure
from scenarios.suites import SuiteWorld


def robustness_report(
    means: pd.DataFrame, world: SuiteWorld, configuration: Mapping[str, object], command: str
) -> Report:
    """Return the report: how much slower training gets, by method, as links fluctuate.

    Parameters
    ----------
    means
        Those of `scenarios.measure.robustness.curves.means_of`.
    world
        World whose map and plan stand on the first screen.
    """
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
        ),
        figures=(robustness_figure(means), *views.more),
        configuration=configuration,
        caveats=(f"{len(swings)} fluctuations; the map and the plan are of {world.name}.",),
    )
