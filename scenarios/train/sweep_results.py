"""Results of a sweep: a row for each trial, a row for each combination, a picture."""

import math
from collections.abc import Hashable, Mapping, Sequence

import pandas as pd
from rich import box
from rich.table import Table

from des.base.names import counted
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Points
from des.figures.palette import BLUE, INK
from des.figures.panels import Axis, named_rows
from scenarios.frame.files import read_csv
from scenarios.frame.metrics_log import read_metrics
from scenarios.frame.plots import seed_curves
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.frame.statistics import mean_and_interval
from scenarios.train.outcome import POLICY
from scenarios.train.sweep_grid import Trial, policy_figures

_SHOWN = {
    "iteration_time_s": ("iteration time [s]", 1.0),
    "excess_over_exact": ("excess over exact [%]", 1e2),
    "reward": ("reward", 1.0),
}
"""Figures of the table: headings, and what the shown number is multiplied by."""

_MOST_DRAWN = 60


def trials_table(trials: Sequence[Trial], errors: Mapping[str, str]) -> pd.DataFrame:
    """One row per trial: settings, seed, figures of the policy, and why it failed if it did."""
    rows = []
    for trial in trials:
        row: dict[str, object] = {**trial.settings, "seed": trial.seed}
        error = errors.get(trial.name)
        if error is None:
            evaluation = read_csv(trial.point.folder.evaluation_csv)
            rewards = evaluation.loc[evaluation["planner"] == POLICY, "reward"]
            row |= {"reward": float(rewards.mean()), **policy_figures(evaluation)}
        rows.append(row | {"error": error})
    return pd.DataFrame(rows)


def settings_table(trials: pd.DataFrame, fields: Sequence[str]) -> pd.DataFrame:
    """One row per combination of settings, best mean reward first.

    Parameters
    ----------
    trials
        Result of `trials_table`.
    fields
        The varied fields.

    Returns
    -------
    pandas.DataFrame
        ``fields``, ``num_seeds`` that went through of ``num_trials``, and for each figure its mean
        over these seeds under its own name and ``<figure>_half_width`` of the 95 % interval; NaN
        where there is none. Combinations without a seed that went through come last.
    """
    figures = [name for name in _SHOWN if name in trials]
    rows = []
    groups = trials.groupby(list(fields), sort=False) if fields else [((), trials)]
    for values, group in groups:
        row: dict[str, object] = dict(zip(fields, values, strict=True))
        row |= {"num_seeds": int(group["error"].isna().sum()), "num_trials": len(group)}
        for name in figures:
            known = group[name].dropna().to_numpy(dtype=float)
            interval = mean_and_interval(known) if len(known) else None
            row[name] = math.nan if interval is None else interval.mean
            row[f"{name}_half_width"] = math.nan if interval is None else interval.half_width
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.sort_values("reward", ascending=False, kind="stable") if figures else table


def show_table(settings: pd.DataFrame, fields: Sequence[str]) -> Table:
    """Return what `settings_table` returned as a table for a console."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption="Mean ± half width of the 95 % Student-t interval over seeds; best reward first.",
        caption_justify="left",
    )
    for field in fields:
        table.add_column(field.replace("_", "\n"))
    table.add_column("seeds", justify="right")
    figures = [name for name in _SHOWN if name in settings]
    for name in figures:
        table.add_column(_SHOWN[name][0].replace(" ", "\n"), justify="right", no_wrap=True)
    for row in settings.to_dict("records"):
        cells = [_cell(row, name) for name in figures]
        seeds = f"{row['num_seeds']}/{row['num_trials']}"
        table.add_row(*(str(row[field]) for field in fields), seeds, *cells)
    return table


def sweep_report(trials: Sequence[Trial], table: pd.DataFrame, repeat: Repetition) -> Report:
    """Return the report of a sweep in which a training or more went through."""
    fields = list(trials[0].settings)
    settings = settings_table(table, fields)
    best = settings.iloc[0]
    named = ", ".join(f"{field} {best[field]}" for field in fields) or "base"
    logs = {
        trial.name: read_metrics(trial.point.folder.metrics_csv)
        for trial, error in zip(trials, table["error"], strict=True)
        if pd.isna(error) and all(str(best[field]) == trial.settings[field] for field in fields)
    }
    shown = [name for name in _SHOWN if name in settings]
    rows = tuple(
        (
            ", ".join(f"{field} {row[field]}" for field in fields) or "base",
            f"{row['num_seeds']}/{row['num_trials']}",
            *(_cell(row, name) for name in shown),
        )
        for row in settings.to_dict("records")
    )
    return Report(
        title="Sweep over settings and seeds",
        question="Which settings have the best mean reward?",
        answer=f"{named}: reward {_cell(best.to_dict(), 'reward')} over "
        f"{counted(best['num_seeds'], 'seed')}.",
        repeat=repeat,
        tables=(
            PageTable(
                title="Settings, the best first",
                head=("settings", "seeds", *(_SHOWN[name][0] for name in shown)),
                rows=rows,
                notes=("Mean ± half width of the 95 % Student-t interval over seeds.",),
            ),
        ),
        figures=(
            sweep_figure(table, settings, fields),
            seed_curves(logs, title=f"Learning curves of {named}"),
        ),
    )


def sweep_figure(trials: pd.DataFrame, settings: pd.DataFrame, fields: Sequence[str]) -> Figure:
    """Return the reward of each combination: every seed, their mean and its 95 % interval."""
    drawn = settings[settings["num_seeds"] > 0].head(_MOST_DRAWN).to_dict("records")
    labels = [", ".join(f"{field} {row[field]}" for field in fields) or "base" for row in drawn]
    rewards = [
        trials.loc[
            trials[fields].eq([row[field] for field in fields]).all(axis="columns"), "reward"
        ].dropna()
        for row in drawn
    ]
    places = tuple(map(float, range(len(drawn))))
    seeds = Points(
        label="each seed",
        x=tuple(float(one) for own in rewards for one in own),
        y=tuple(place for place, own in zip(places, rewards, strict=True) for _ in own),
        colour=BLUE,
        size=4.0,
    )
    means = Points(
        label="mean and 95 % interval",
        x=tuple(float(row["reward"]) for row in drawn),
        y=places,
        x_half_widths=tuple(float(row["reward_half_width"]) for row in drawn),
        colour=INK,
        symbol="diamond",
        hovers=tuple(labels),
    )
    return panel_figure(
        name="sweep",
        title="Reward of each combination of settings",
        seen=f"Rewards of {len(trials)} trials in {len(drawn)} combinations; the best mean is "
        f"{drawn[0]['reward']:.4g}, of {labels[0]}.",
        x=Axis(label="reward of the policy"),
        y=named_rows(labels),
        marks=(seeds, means),
        height=0.6 + 0.34 * len(drawn),
        grid="x",
        width=8.0,
    )


def _cell(row: Mapping[Hashable, float], name: str) -> str:
    """Show a mean, and its half width if it has one."""
    factor = _SHOWN[name][1]
    mean, half_width = factor * row[name], factor * row[f"{name}_half_width"]
    if math.isnan(mean):
        return "-"
    return f"{mean:.4g}" + ("" if math.isnan(half_width) else f"±{half_width:.2g}")
