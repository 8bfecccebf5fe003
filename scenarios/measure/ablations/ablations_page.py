"""Report of the ablations."""

from collections.abc import Mapping, Sequence

import pandas as pd

from scenarios.frame.plots import interval_figure
from scenarios.frame.report import PageTable, Report
from scenarios.measure.example_plan import example_views
from scenarios.suites import suite


def ablation_report(
    frame: pd.DataFrame, worth: Sequence[str], configuration: Mapping[str, object], command: str
) -> Report:
    """Return the report: the gap of each variant over networks and seeds.

    Parameters
    ----------
    worth
        What learning is worth, a sentence a line, see `scenarios.measure.ablations.worth`.
    """
    percent = frame.assign(gap=100.0 * frame["gap"]).dropna(subset=["gap"])
    groups = {
        str(name): own.groupby("network")["gap"].mean().to_numpy(dtype=float)
        for name, own in percent.groupby("variant", sort=False)
    }
    figure = interval_figure(
        groups,
        name="gaps",
        title="Gap to the best plan known, by variant",
        label="gap [%]",
        points="each network, mean over seeds",
    )
    means = {name: float(values.mean()) for name, values in groups.items()}
    best = min(means, key=lambda name: means[name]) if means else "none"
    views = example_views(suite("eval_static").with_domains(4).world(0, 0))
    return Report(
        title="Ablations of Hi-PPO's placement",
        question="What is each part of the placement worth?",
        answer=f"Least gap: {best}, {means[best]:.2f} % on the mean." if means else "No plan fits.",
        command=command,
        first=views.first,
        tables=(
            PageTable(
                title="Mean gap by variant",
                head=("variant", "gap [%]", "networks"),
                rows=tuple((name, f"{means[name]:.2f}", str(len(groups[name]))) for name in groups),
            ),
            PageTable(
                title="What learning is worth", head=("",), rows=tuple((one,) for one in worth)
            ),
        ),
        figures=(figure, *views.more) if groups else views.more,
        configuration=configuration,
    )
