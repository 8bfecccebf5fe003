"""Results of a sweep: a row for each trial, a row for each combination, a picture."""

import math
from collections.abc import Hashable, Mapping, Sequence

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from rich import box
from rich.table import Table

from scenarios.frame.files import read_csv
from scenarios.frame.plots import BLUE, FAINT, INK
from scenarios.frame.statistics import mean_and_interval
from scenarios.train.outcome import POLICY
from scenarios.train.sweep_grid import Trial
from scenarios.train.training_points import policy_figures

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


def shown_table(settings: pd.DataFrame, fields: Sequence[str]) -> Table:
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


def sweep_figure(trials: pd.DataFrame, settings: pd.DataFrame, fields: Sequence[str]) -> Figure:
    """Draw the reward of each combination: every seed, their mean and its 95 % interval."""
    drawn = settings[settings["num_seeds"] > 0].head(_MOST_DRAWN).to_dict("records")
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    height = 1.3 + (0.2 + 0.14 * max(1, len(fields))) * len(drawn)
    figure = Figure(figsize=(7.0, height), dpi=150, layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for place, row in enumerate(drawn):
        of_row = trials[fields].eq([row[field] for field in fields]).all(axis="columns")
        rewards = trials.loc[of_row, "reward"].dropna()
        spread = None if len(rewards) == 1 else row["reward_half_width"]
        axes.errorbar(
            row["reward"], place, xerr=spread, fmt="|", color=INK, capsize=4, markersize=9
        )
        axes.scatter(rewards, [place] * len(rewards), s=22, color=BLUE, linewidths=0, zorder=3)
    labels = ["\n".join(f"{field} {row[field]}" for field in fields) or "base" for row in drawn]
    axes.set_yticks(range(len(drawn)), labels, fontsize=8, parse_math=False)
    axes.set_ylim(len(drawn) - 0.5, -0.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0, colors=INK)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_xlabel("reward of the policy: each seed, mean and 95 % interval", color=INK)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _cell(row: Mapping[Hashable, float], name: str) -> str:
    """Show a mean, and its half width if it has one."""
    factor = _SHOWN[name][1]
    mean, half_width = factor * row[name], factor * row[f"{name}_half_width"]
    if math.isnan(mean):
        return "-"
    return f"{mean:.4g}" + ("" if math.isnan(half_width) else f"±{half_width:.2g}")
