"""Table of rehearsed planners: errors, ranks, regret, and the gain of our own over its rivals."""

import numpy as np
import pandas as pd

from des.figures.figure import Figure
from des.figures.marks import SYMBOLS, Line, Points
from des.figures.palette import COLOURS, GREY
from des.figures.panels import Axis, Panel, named_rows
from scenarios.rehearse.planner_runs import DECIDE
from scenarios.reproduce.report import Bound, Reproduction

_MOST_ERROR, _LEAST_CORRELATION, _MOST_REGRET, _LEAST_GAIN = 5.0, 0.9, 3.0, 10.0
"""Targets: mean absolute error [%], rank correlation, mean regret [%], mean gain [%]."""
_LEAST_RANKED = 3
"""Fewest different plans of a world whose ranks are correlated."""
_SHOWN = ("world", "planner", "schedule", "num_ranks", "predicted_s", "measured_s", "error_percent")


def planner_table(rows: pd.DataFrame) -> Reproduction:
    """Judge predictions and plans.

    Parameters
    ----------
    rows
        A row of each planner and world, see `planner_runs.measure_frame`.

    Raises
    ------
    ValueError
        If no planner has a plan.
    """
    frame = rows[rows["error"] == ""].drop(columns="error")
    if frame.empty:
        raise ValueError(
            f"planners must have a plan for a world, got none: {rows['error'].iloc[0]}"
        )
    frame = frame.assign(error_percent=100.0 * (frame["measured_s"] / frame["predicted_s"] - 1.0))
    distinct = frame.drop_duplicates(["world", "launch"])
    errors = distinct["error_percent"]
    ranks, regrets, gains = _ranks(distinct), _regrets(distinct), gains_percent(frame)
    bounds = [
        Bound.at_most(
            f"mean absolute error [%] of {len(distinct)} plans",
            float(errors.abs().mean()),
            _MOST_ERROR,
            shown=".1f",
        ),
        Bound.at_most(
            f"mean regret [%] of the plan that is predicted to be quickest, {len(regrets)} worlds",
            float(np.mean(regrets)),
            _MOST_REGRET,
            shown=".1f",
        ),
    ]
    if ranks:
        name = f"rank correlation (Spearman) of the plans of a world, mean of {len(ranks)}"
        bounds.append(Bound.at_least(name, float(np.mean(ranks)), _LEAST_CORRELATION, shown=".2f"))
    if len(gains):
        name = f"gain [%] of {DECIDE} over the best rival of a world, mean of {len(gains)}"
        bounds.append(Bound.at_least(name, float(gains.mean()), _LEAST_GAIN, shown=".1f"))
    refused = rows[rows["error"] != ""]
    return Reproduction(
        title="Planners, predicted and then rehearsed on one runtime",
        frame=frame,
        bounds=tuple(bounds),
        figure=_figure(frame, distinct),
        shown=_SHOWN,
        notes=(
            f"Errors: mean {errors.mean():+.1f} %, 95th percentile of the absolute ones "
            f"{np.percentile(errors.abs(), 95):.1f} %.",
            *_rivals(frame, gains),
            *(
                f"{one.world}: {one.planner} has no plan: {one.error}"
                for one in refused.itertuples()
            ),
        ),
    )


def _ranks(distinct: pd.DataFrame) -> list[float]:
    """Rank correlation in each world that has enough plans."""
    return [
        float(own["predicted_s"].corr(own["measured_s"], method="spearman"))
        for _, own in distinct.groupby("world")
        if len(own) >= _LEAST_RANKED
    ]


def _regrets(distinct: pd.DataFrame) -> list[float]:
    """Loss in each world from the plan that is predicted to be the quickest. [%]"""
    return [
        100.0
        * (
            float(own.nsmallest(1, "predicted_s")["measured_s"].iloc[0]) / own["measured_s"].min()
            - 1.0
        )
        for _, own in distinct.groupby("world")
    ]


def gains_percent(frame: pd.DataFrame) -> pd.Series:
    """Measured time of the best rival over that of `DECIDE`, less 1, by world. [%]"""
    times_s = frame.pivot(index="world", columns="planner", values="measured_s")
    if DECIDE not in times_s or len(times_s.columns) == 1:
        return pd.Series(dtype=float)
    return 100.0 * (times_s.drop(columns=DECIDE).min(axis=1) / times_s[DECIDE] - 1.0).dropna()


def _rivals(frame: pd.DataFrame, gains: pd.Series) -> list[str]:
    """Range of the gains, and the mean time of each rival over that of `DECIDE`."""
    if gains.empty:
        return []
    times_s = frame.pivot(index="world", columns="planner", values="measured_s")
    others = times_s.drop(columns=DECIDE).div(times_s[DECIDE], axis=0).mean().sort_values()
    means = ", ".join(f"{name} {factor:.2f}" for name, factor in others.items())
    return [
        f"Gains over the best rival: {gains.min():+.1f} to {gains.max():+.1f} %, positive in "
        f"{int((gains > 0.0).sum())} of {len(gains)} worlds.",
        f"Mean of the measured times over that of {DECIDE} in the same world: {means}.",
    ]


def _figure(frame: pd.DataFrame, distinct: pd.DataFrame) -> Figure:
    planners, worlds = list(dict.fromkeys(frame["planner"])), list(dict.fromkeys(frame["world"]))
    looks = [(COLOURS[n % len(COLOURS)], SYMBOLS[n % len(SYMBOLS)]) for n in range(len(planners))]
    quickest_s = frame.groupby("world")["measured_s"].min()
    low, high = frame["predicted_s"].min(), frame["predicted_s"].max()
    lines = [
        Line(
            label="",
            x=(low, high),
            y=(factor * low, factor * high),
            colour=GREY,
            dash="solid" if factor == 1.0 else "dot",
            width=0.8,
        )
        for factor in (0.95, 1.0, 1.05)
    ]
    against, by_world = [], []
    for name, (colour, symbol) in zip(planners, looks, strict=True):
        own = frame[frame["planner"] == name]
        common = {"label": name, "colour": colour, "symbol": symbol, "is_open": True}
        against.append(Points(x=tuple(own["predicted_s"]), y=tuple(own["measured_s"]), **common))
        over = own["measured_s"].to_numpy() / quickest_s[own["world"]].to_numpy()
        rows = tuple(float(worlds.index(world)) for world in own["world"])
        by_world.append(Points(x=tuple(over.tolist()), y=rows, **common))
    error = distinct["error_percent"].abs().mean()
    return Figure(
        name="picture",
        title="Planners on one runtime: predicted, then measured",
        seen=f"{len(distinct)} plans of {len(planners)} planners for {len(worlds)} worlds; the "
        f"mean absolute error of their predictions is {error:.1f} %. Dotted lines are 5 % off.",
        panels=(
            Panel(
                x=Axis(label="predicted step [s]"),
                y=Axis(label="measured step [s]"),
                marks=(*lines, *against),
                height=4.0,
                grid="both",
            ),
            Panel(
                x=Axis(label="measured step over the world's quickest"),
                y=named_rows(worlds),
                marks=tuple(by_world),
                height=4.0,
                grid="both",
            ),
        ),
        columns=2,
        width=11.0,
    )
