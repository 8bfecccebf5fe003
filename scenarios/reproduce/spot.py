"""Jobs on sites that come and go: tokens of each rule over those of a clairvoyant.

Courses are those of the public spot traces (--traces, a clone of
github.com/skypilot-org/spot-traces), or of synthetic laws without. Rules are tuned on first halves
of nine zones; second halves are judged, and families that were not seen: other rows and servers by
sixteens, or short stays. Step times of each set of sites come from searches of bound plans.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from agents.replanning.spot.table import (
    METHODS,
    SpotCase,
    clairvoyant_tokens,
    shares_of,
    tune_horizon_h,
)
from des.base.document import DOCUMENT
from des.figures.figure import Figure, panel_figure
from des.figures.marks import SYMBOLS, Points
from des.figures.palette import COLOURS
from des.figures.panels import Axis, named_rows
from des.spot.offers import Table
from scenarios.reproduce.cases import PUBLISHED, read_cases
from scenarios.reproduce.report import Bound, Reproduction
from scenarios.reproduce.spot_methods import half_width, shares_by_reading, suites_of
from scenarios.reproduce.spot_sites import SiteSets, searched_cases

_HOUR_S = 3600.0


def reproduce_cases(
    cases: Path, *, traces: str, draws: int, partial: bool, readable: bool
) -> Reproduction:
    """Tune every rule, judge it on every suite, and set it beside the clairvoyant.

    Parameters
    ----------
    cases
        File of sites with the step time of each set.
    traces
        Clone of the traces; empty: synthetic laws.
    draws
        Sites to draw and search instead; 0: none.
    partial
        Whether rules see only what they hold or ask for.
    readable
        Whether the engine to read runs the jobs that are judged, which changes nothing but time.

    Raises
    ------
    UsageError
        If a file or folder is missing.
    ValueError
        If one is wrong.
    """
    file = read_cases(cases, SiteSets, PUBLISHED / "spot.json")
    rows = tuple(searched_cases(draws)) if draws else file.rows
    DOCUMENT.add(cases=[row.model_dump() for row in rows] if draws else str(cases))
    suites = suites_of(Path(traces) if traces else None, rows, sees_all=not partial)
    tuning = clairvoyant_tokens(suites.training)
    most = {name: clairvoyant_tokens(judged) for name, judged in suites.judged.items()}
    found = []
    for name, method in METHODS.items():
        horizon_h = tune_horizon_h(method, suites.training, tuning)
        for suite, judged in suites.judged.items():
            policy = method.make(judged, horizon_h * _HOUR_S)
            shares = (
                shares_by_reading(method, horizon_h, judged, most[suite])
                if readable
                else shares_of(policy, judged, most[suite])
            )
            found.append(_row(suite, name, horizon_h, judged, shares))
    order = list(suites.judged)
    found.sort(key=lambda row: order.index(str(row["suite"])))
    frame = pd.DataFrame(found)
    return Reproduction(
        title="Jobs on sites that come and go: share of a clairvoyant's tokens",
        frame=frame,
        bounds=tuple(_bounds(frame, file.targets, file.recorded) if traces else ()),
        unjudged=() if traces else ("synthetic laws have no published figure",),
        figure=draw(frame),
        shown=("suite", "rule", "horizon_h", "share_percent", "half_width", "excess_percent"),
        notes=(
            "share_percent: mean over instances, with half of its 95 % interval by bootstrap.",
            "excess_percent: what the clairvoyant trains more than the rule, mean.",
        ),
    )


def _row(
    suite: str, rule: str, horizon_h: float, cases: Sequence[SpotCase], shares: Table
) -> dict[str, object]:
    models = {
        f"{model}_percent": 100 * float(np.mean(shares[[case.model == model for case in cases]]))
        for model in dict.fromkeys(case.model for case in cases)
    }
    return {
        "suite": suite,
        "rule": rule,
        "horizon_h": horizon_h,
        "share_percent": 100 * float(shares.mean()),
        "half_width": 100 * half_width(shares),
        **models,
        "excess_percent": 100 * float((1 / shares - 1).mean()),
    }


def _bounds(
    frame: pd.DataFrame, targets: dict[str, float], recorded: dict[str, float]
) -> list[Bound]:
    """Compare the best rule of the known zones, and of both unseen families, with its target."""
    best = frame.groupby("suite")["share_percent"].max()
    figures = {
        "known_share_percent": float(best["known"]),
        "unseen_share_percent": float(best.drop("known").mean()),
    }
    return [
        Bound.at_least(
            name.replace("_", " "), figures[name], target, recorded=recorded.get(name), shown=".1f"
        )
        for name, target in targets.items()
    ]


def draw(frame: pd.DataFrame) -> Figure:
    """Return the share of each rule in each suite, with its interval."""
    rules = list(dict.fromkeys(map(str, frame["rule"])))
    series = [
        Points(
            label=str(suite),
            x=tuple(rows["share_percent"]),
            y=tuple(float(rules.index(rule)) for rule in rows["rule"]),
            x_half_widths=tuple(rows["half_width"]),
            colour=COLOURS[place],
            symbol=SYMBOLS[place],
        )
        for place, (suite, rows) in enumerate(frame.groupby("suite", sort=False))
    ]
    best = frame.sort_values("share_percent").iloc[-1]
    return panel_figure(
        name="picture",
        title="Tokens over those of a clairvoyant [%]",
        seen=f"{len(rules)} rules in {len(series)} suites; the highest share is that of "
        f"{best['rule']} in {best['suite']}, {best['share_percent']:.1f} %.",
        x=Axis(label="share of the clairvoyant's tokens [%]"),
        y=named_rows(rules),
        marks=series,
        height=0.8 + 0.5 * len(rules),
        grid="x",
        width=10.0,
    )
