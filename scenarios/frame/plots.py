"""Figures of trainings and evaluations, as values."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from des.base.names import counted
from des.figures.figure import Figure
from des.figures.marks import GuideLine, Line, Points, Symbol
from des.figures.palette import BLUE, COLOURS, INK, SKY
from des.figures.panels import Axis, Panel, named_rows
from scenarios.frame.statistics import mean_and_interval

LOG_SCALE_FROM = 10.0  # a linear axis hides the small one of two times this far apart


def learning_curve(metrics: pd.DataFrame, references: Mapping[str, float]) -> Figure:
    """Return the mean reward and the mean iteration time against environment steps.

    Parameters
    ----------
    metrics
        The training log, with the columns ``step``, ``mean_reward`` and ``mean_iteration_time_s``.
    references
        Mean iteration time of each planner to compare with, on the same draws. [s]

    Raises
    ------
    ValueError
        If a column is missing or there are no rows.
    """
    _require(metrics, ("step", "mean_reward", "mean_iteration_time_s"), "metrics")
    steps, times_s = _column(metrics, "step"), _column(metrics, "mean_iteration_time_s")
    shown = [*(one for one in times_s if not math.isnan(one)), *references.values()]
    is_log = bool(shown) and min(shown) > 0 and max(shown) / min(shown) >= LOG_SCALE_FROM
    symbol: Symbol | None = "circle" if len(metrics) == 1 else None
    ordered = sorted(references.items(), key=lambda item: item[1])
    rules = tuple(
        GuideLine(label=f"{planner} {time_s:.3g} s", y=time_s, colour=COLOURS[1 + place % 6])
        for place, (planner, time_s) in enumerate(ordered)
    )
    rewards = _column(metrics, "mean_reward")
    curve = Line(label="policy", x=steps, y=times_s, colour=BLUE, symbol=symbol)
    x = Axis(label="environment steps")
    return Figure(
        name="learning_curve",
        title="Learning curve; planners as judged afterwards",
        seen=f"Mean reward from {rewards[0]:.4g} to {rewards[-1]:.4g} and mean iteration time from "
        f"{times_s[0]:.4g} to {times_s[-1]:.4g} s over {steps[-1]:.0f} environment steps.",
        panels=(
            Panel(
                x=x,
                y=Axis(label="mean reward"),
                marks=(Line(label="policy", x=steps, y=rewards, colour=BLUE, symbol=symbol),),
            ),
            Panel(
                x=x,
                y=Axis(label="mean iteration time [s]", scale="log" if is_log else "linear"),
                marks=(*rules, curve),
            ),
        ),
        shares_x=True,
    )


def seed_curves(logs: Mapping[str, pd.DataFrame], *, title: str) -> Figure:
    """Return reward and iteration time over several seeds: each, their mean and its 95 % band.

    Parameters
    ----------
    logs
        Training log of each seed, as `learning_curve` takes one; where they have different numbers
        of updates, the first ones that all have.

    Raises
    ------
    ValueError
        If there is no log, or one lacks a column or rows.
    """
    if not logs:
        raise ValueError("seed curves: logs must be one or more, got none")
    for name, log in logs.items():
        _require(log, ("step", "mean_reward", "mean_iteration_time_s"), name)
    length = min(map(len, logs.values()))
    cut = [log.iloc[:length] for log in logs.values()]
    steps = _column(cut[0], "step")
    panels = []
    ends = []
    for column, label in _CURVES.items():
        curves = np.stack([log[column].to_numpy(dtype=float) for log in cut])
        x = Axis(label="environment steps")
        panels.append(Panel(x=x, y=Axis(label=label), marks=seed_lines(steps, curves)))
        last = mean_and_interval(curves[:, -1])
        ends.append(f"{label} {last.mean:.4g}{last.spread_text}")
    return Figure(
        name="seed_curves",
        title=title,
        seen=f"{counted(len(logs), 'seed')} over {steps[-1]:.0f} environment steps; at the end "
        f"{' and '.join(ends)}.",
        panels=tuple(panels),
        shares_x=True,
    )


_CURVES = {
    "mean_reward": "mean reward",
    "mean_iteration_time_s": "mean iteration time [s]",
}


def seed_lines(steps: tuple[float, ...], curves: np.ndarray) -> tuple[Line, ...]:
    """Return the curve of each seed and their mean with its 95 % band; (seeds, steps)."""
    mean = curves.mean(axis=0)
    half = np.zeros_like(mean)
    if len(curves) > 1:
        half = np.array([mean_and_interval(one).half_width for one in curves.T])
    seeds = (
        Line(label="a seed", x=steps, y=tuple(one.tolist()), colour=SKY, width=0.9)
        for one in curves
    )
    middle = Line(
        label="mean and 95 % band",
        x=steps,
        y=tuple(mean.tolist()),
        low=tuple((mean - half).tolist()),
        high=tuple((mean + half).tolist()),
        colour=BLUE,
    )
    return (*seeds, middle)


def comparison_bars(evaluation: pd.DataFrame) -> Figure:
    """Return each planner's mean iteration time with its 95 % interval, over a point per draw.

    Parameters
    ----------
    evaluation
        One row per draw and planner, with ``planner`` and ``iteration_time_s``.

    Raises
    ------
    ValueError
        If a column is missing, there are no rows or a time is not finite.
    """
    _require(evaluation, ("planner", "iteration_time_s"), "evaluation")
    groups = {
        str(planner): group["iteration_time_s"].to_numpy(dtype=float)
        for planner, group in evaluation.groupby("planner", sort=True)
    }
    return interval_figure(
        groups,
        name="comparison",
        title="Iteration time on the held-out draws",
        label="iteration time [s]",
        points="each draw",
    )


def interval_figure(
    groups: Mapping[str, np.ndarray], *, name: str, title: str, label: str, points: str
) -> Figure:
    """Return the mean and 95 % interval of each group, the lowest first, over its values."""
    intervals = {group: mean_and_interval(values) for group, values in groups.items()}
    order = sorted(groups, key=lambda group: intervals[group].mean)
    x = [float(value) for group in order for value in groups[group]]
    y = [
        place + 0.2 * offset
        for place, group in enumerate(order)
        for offset in _spread(len(groups[group]))
    ]
    hovers = [f"{group}: {value:.5g}" for group in order for value in groups[group]]
    means = [intervals[group].mean for group in order]
    halves = [intervals[group].half_width for group in order]
    said = [
        f"{group}: {mean:.4g}" + ("" if math.isnan(half) else f" ± {half:.2g}")
        for group, mean, half in zip(order, means, halves, strict=True)
    ]
    panel = Panel(
        x=Axis(label=label, low=0.0),
        y=named_rows(order),
        marks=(
            Points(label=points, x=tuple(x), y=tuple(y), colour=BLUE, size=4.0, hovers=(*hovers,)),
            Points(
                label="mean and 95 % interval",
                x=tuple(means),
                y=tuple(map(float, range(len(order)))),
                x_half_widths=tuple(halves),
                colour=INK,
                symbol="diamond",
                hovers=tuple(said),
            ),
        ),
        height=max(1.4, 0.42 * len(order)),
        grid="x",
    )
    return Figure(name=name, title=title, seen=f"{label}: {'; '.join(said)}.", panels=(panel,))


def _column(frame: pd.DataFrame, name: str) -> tuple[float, ...]:
    return tuple(frame[name].to_numpy(dtype=float).tolist())


def _require(frame: pd.DataFrame, columns: Iterable[str], name: str) -> None:
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(f"the {name} must have the columns {', '.join(missing)}")
    if frame.empty:
        raise ValueError(f"the {name} must have rows, got none")


def _spread(num_points: int) -> Sequence[float]:
    """Offsets from -1 to 1 that keep neighbouring draws apart, the same every time."""
    offsets = 2.0 * ((np.arange(num_points) * 0.618033988749895) % 1.0) - 1.0
    return [float(one) for one in offsets]
