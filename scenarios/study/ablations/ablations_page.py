"""Report of the ablations."""

from collections.abc import Sequence

import pandas as pd
from rich.table import Table

from scenarios.frame.plots import interval_figure
from scenarios.frame.repeat import Repetition
from scenarios.frame.report import PageTable, Report
from scenarios.study.ablations.intervals import over_seeds_and_networks
from scenarios.study.example_plan import example_views
from scenarios.suites import suite


def ablation_report(frame: pd.DataFrame, worth: Sequence[str], repeat: Repetition) -> Report:
    """Return the report: the gap of each variant over networks and seeds.

    Parameters
    ----------
    worth
        What learning is worth, a sentence a line, see `scenarios.study.ablations.worth`.
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
        repeat=repeat,
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
    )


def ablation_table(frame: pd.DataFrame) -> Table:
    """Gaps by variant and number of domains."""
    table = Table(title="gap to the best plan known [%]: mean ± 95 % interval / 95th percentile")
    sizes = sorted(frame["num_domains"].unique())
    table.add_column("variant")
    for size in sizes:
        table.add_column(f"K = {size}", justify="right")
    for variant in frame["variant"].unique():
        own = frame[frame["variant"] == variant]
        table.add_row(variant, *(_cell(own[own["num_domains"] == size]) for size in sizes))
    return table


def _cell(own: pd.DataFrame) -> str:
    """Figures over networks on which the plans of all seeds fit; how often one does not."""
    gaps = 100.0 * own.pivot(index="seed", columns="network", values="gap")
    fitting = gaps.dropna(axis="columns")
    misfits = int(gaps.isna().sum().sum())
    told = f" ({misfits} do not fit)" if misfits else ""
    if fitting.empty:
        return told.strip()
    found = over_seeds_and_networks(fitting.to_numpy())
    tail = fitting.stack().quantile(0.95)
    return f"{found.mean:.2f} ± {found.half_width:.2f} / {tail:.1f}{told}"
