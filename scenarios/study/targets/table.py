"""The table of all targets: one row per target, one column per checkpoint, means over seeds."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from des.base.speaking import SPEAKER
from des.figures.figure import Figure
from des.plan.plan_texts import PERFECT_DEVICES
from des.views.plan_views import PlanViews
from scenarios.frame.files import write_json
from scenarios.frame.outputs import OutputChoice, write_outputs
from scenarios.frame.report import Repetition, Report
from scenarios.frame.run_folder import RunFolder, source_revision
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.targets import (
    allocation,
    bound,
    communication,
    fluctuation,
    gap,
    headroom,
    pareto,
    ranking,
    response_times,
    stability,
    time_and_utilisation,
)
from scenarios.study.targets.measurement_size import SchedulerColumn
from scenarios.study.targets.names import PERFECT_GROUPS
from scenarios.study.targets.results_store import KeptGroup, Key, Origin, read_kept, store_result
from scenarios.study.targets.target import Target
from scenarios.study.targets.target_table import (
    LEGEND,
    SEEDS,
    WORTH,
    MeasuredTargets,
    short,
    spread_of_seeds,
    table_html,
    value_of,
)

Measure = Callable[[SchedulerColumn], list[Target]]
"""Measures a group of targets of a column."""


def of_perfect_devices(measure: Measure) -> Measure:
    """Measure a group on perfect devices whatever the trainer, and say so in its notes."""

    def measured(column: SchedulerColumn) -> list[Target]:
        targets = measure(column.on_perfect_devices())
        return [replace(one, notes=(*one.notes, PERFECT_DEVICES)) for one in targets]

    return measured


GROUPS: Mapping[str, Measure] = MappingProxyType(
    {
        "time": time_and_utilisation.measure,
        "communication": communication.measure,
        "pareto": pareto.measure,
        "response": response_times.measure,
        "allocation": allocation.measure,
        "gap": gap.measure,
        "stability": stability.measure,
        "fluctuation": fluctuation.measure,
        "headroom": headroom.measure,
        "ranking": ranking.measure,
        "bound": bound.measure,
    }
)
"""Targets by the group that measures them; users choose among these names."""


def measure_groups(
    columns: Sequence[SchedulerColumn],
    origins: Mapping[Key, Origin],
    run_folder: Path,
    keys: Collection[Key] | None = None,
) -> dict[Key, KeptGroup]:
    """Measure the groups that a run folder does not hold yet, and keep each there as it comes.

    Parameters
    ----------
    origins
        Origin of each column and group of the run, in the order of measurement.
    keys
        Columns and groups to measure; None: all.

    Raises
    ------
    ValueError
        As `scenarios.study.targets.results_store.read_kept` does.
    """
    kept, revision = read_kept(run_folder, origins), source_revision()
    by_name = {column.name: column for column in columns}
    for key, origin in origins.items():
        if key in kept or (keys is not None and key not in keys):
            continue
        name, group = key
        with SPEAKER.doing(f"{name}: {group}", is_said_first=True):
            measure = GROUPS[group]
            if group in PERFECT_GROUPS:
                measure = of_perfect_devices(measure)
            targets = tuple(measure(by_name[name]))
        found = KeptGroup(targets=targets, source_revision=revision)
        kept[key] = store_result(run_folder, key, origin, found)
    return kept


def write_targets(
    folder: RunFolder,
    measured: MeasuredTargets,
    scope_note: str,
    *,
    choice: OutputChoice,
    repeat: Repetition,
    views: PlanViews,
    figures: tuple[Figure, ...],
) -> None:
    """Write kpi.json, kpi.csv and report.html."""
    write_json(folder.path / "kpi.json", measured.to_plain(scope_note))
    report = Report(
        title="Targets",
        question="Which targets are met?",
        answer=_answer(measured),
        repeat=repeat,
        first=views.first,
        targets=table_html(measured, scope_note),
        figures=(*figures, *views.more),
    )
    write_outputs(folder.path, choice, report, {"kpi": frame_of(measured)})


def _answer(measured: MeasuredTargets) -> str:
    """Verdicts by column, in a sentence."""
    parts = []
    for name, targets in zip(measured.columns, measured.targets, strict=True):
        counts = Counter(target.verdict for target in targets)
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        parts.append(f"{name}: of {len(targets)} targets {said}.")
    return " ".join(parts)


def frame_of(measured: MeasuredTargets) -> pd.DataFrame:
    """One row per target and column, in plain figures."""
    rows = []
    for name, targets in zip(measured.columns, measured.targets, strict=True):
        for target in targets:
            plain = target.to_plain()
            notes = "; ".join(target.notes)
            rows.append({"column": name, **plain, "notes": notes})
    return pd.DataFrame(rows)


def show_targets(
    console: Console,
    measured: MeasuredTargets,
    scope_note: str,
    *,
    explained: Sequence[str] | None = None,
) -> None:
    """Print the table of targets and the notes on each figure.

    Parameters
    ----------
    explained
        Targets whose notes are printed; None: all.
    """
    console.print(_table(measured))
    for row in measured.rows:
        if explained is not None and row[0].name not in explained:
            continue
        for name, target in zip(measured.columns, row, strict=True):
            owner = f"{target.name}, {name}" if len(measured.columns) > 1 else target.name
            console.print(f"{owner}: {'; '.join(target.notes)}", soft_wrap=True)
    for line in measured.worth:
        console.print(line, soft_wrap=True)
    legend = f"{LEGEND} {WORTH}" if measured.num_controls else LEGEND
    console.print(f"{legend} {scope_note}", soft_wrap=True)


def _table(measured: MeasuredTargets) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("target")
    table.add_column("target (stretch)")
    for name in measured.columns:
        table.add_column(name, justify="right")
        table.add_column("")
    for row in measured.rows:
        cells = [cell for target in row for cell in (value_of(target), target.mark)]
        table.add_row(row[0].name, row[0].goal.shown(row[0].unit), *cells)
    if measured.has_seeds:
        seeds = spread_of_seeds(measured)
        table.add_section()
        table.add_row(
            SEEDS, seeds.goal.shown(seeds.unit), seeds.unit.shown(seeds.value), seeds.verdict
        )
        table.add_section()
        for row in measured.judged_rows:
            table.add_row(row[0].name, "mean over seeds", _over_columns(row), "")
    return table


def _over_columns(row: Sequence[Target]) -> str:
    values = [target.value for target in row if math.isfinite(target.value)]
    if not values:
        return "-"
    interval = mean_and_interval(values)
    unit = row[0].unit
    return f"{unit.shown(interval.mean)} ± {short(unit.factor * interval.half_width)}"
