"""Report of a comparison of fronts."""

from collections.abc import Mapping, Sequence

import pandas as pd

from des import lower
from des.plan.plan_texts import PERFECT_DEVICES
from des.views.plan_views import plan_views
from scenarios.frame.report import PageTable, Report
from scenarios.study.pareto.figure import fronts_figure
from scenarios.study.pareto.study import WorldFronts

_COLUMNS = {
    "coverage": "coverage of the reference",
    "hypervolume_ratio": "hypervolume",
    "igd_plus": "IGD+",
    "num_points": "plans",
    "timing_s": "time [s]",
}


def pareto_report(
    metrics: pd.DataFrame,
    drawn: Sequence[WorldFronts],
    configuration: Mapping[str, object],
    command: str,
) -> Report:
    """Return the report; on its first screen the quickest plan of the first world's front."""
    means = metrics.groupby(["table", "method"], sort=False)[list(_COLUMNS)].mean()
    own = means.loc[drawn[0].table]["coverage"].sort_values(ascending=False, kind="stable")
    first = drawn[0]
    quickest = min(first.reference.figures, key=lambda one: one.time_s_per_token)
    views = plan_views(
        first.world.topology,
        lower(first.world.topology, first.world.workload, quickest.plan),
        title=f"Quickest plan of the front of {first.world.name}",
    )
    rows = tuple(
        (f"{table}, {method}", *(f"{row[column]:.3f}" for column in _COLUMNS))
        for (table, method), row in zip(means.index, means.to_dict("records"), strict=True)
    )
    return Report(
        title="Fronts of time, cost of the links and utilisation",
        question=f"Which method finds most of the best known front, over {len(drawn)} worlds?",
        answer=f"{own.index[0]}: {100 * own.iloc[0]:.0f} % of it on the mean"
        + (f"; then {own.index[1]}, {100 * own.iloc[1]:.0f} %." if len(own) > 1 else "."),
        command=command,
        first=views.first,
        tables=(
            PageTable(title="Means over worlds", head=("method", *_COLUMNS.values()), rows=rows),
        ),
        figures=(fronts_figure(drawn), *views.more),
        configuration=configuration,
        caveats=(f"{PERFECT_DEVICES.capitalize()}.",),
    )
