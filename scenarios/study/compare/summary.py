"""Summary of all cases: a line per method, differences beyond chance, distance to the bound.

With the communication that is saved against data parallelism, by tokens a step.
"""

from itertools import pairwise

import numpy as np
import pandas as pd

from agents.planners.names import POLICY, SEARCHING_NAMES
from scenarios.frame.statistics import endless_or_mean, mean_and_interval
from scenarios.study.compare.bootstrap import paired_bootstrap, relative_by_world
from scenarios.study.compare.cases import FORESEEN
from scenarios.study.compare.dynamic_part import CLAIRVOYANT, DECIDERS, DUELLISTS

_SEED = 20_261_122
"""Seed of the resampling; any number, but always the same."""


def static_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per planner, the least mean gap first.

    ``gap`` is to ``best_s``, over cases that have one and in which the planner has a plan
    that fits; ``p95_gap`` its 95th percentile. ``over_bound`` is the median of the times over the
    proven bound less 1, where there is one, ``over_ideal`` the mean of the times over the ideal:
    all GPUs at work and nothing sent. ``geometric_gap`` is the geometric mean of the times over
    ``best_s`` less 1, ``num_best_family`` counts plans of the family of the best row, NaN where
    there is no such row. ``over_search`` is the time over that of ``search``
    less 1 over all cases in which both have plans, with its bootstrap interval by world; plans that
    do not fit count there as if they did, in the planner's favour.
    """
    lines = []
    for method, group in rows.groupby("method", sort=True):
        fits = group["fits_memory"].astype(bool)
        has_plan = group["error"].isna() | (group["error"] == "")
        fitting = group[fits]
        proven = fitting[fitting["best_s"].notna()]
        gaps = (proven["time_s"] / proven["best_s"] - 1.0).to_numpy(dtype=float)
        interval = mean_and_interval(gaps) if len(gaps) else None
        lines.append(
            {
                "method": method,
                "num_cases": len(group),
                "num_without_plan": int((~has_plan).sum()),
                "num_over_memory": int((has_plan & ~fits).sum()),
                "num_proven": len(gaps),
                "is_same_training": bool(group["is_same_training"].all()),
                "gap": np.nan if interval is None else interval.mean,
                "gap_half_width": np.nan if interval is None else interval.half_width,
                "p95_gap": float(np.quantile(gaps, 0.95)) if len(gaps) else np.nan,
                "over_bound": float((fitting["time_s"] / fitting["bound_s"] - 1.0).median()),
                "over_ideal": float((fitting["time_s"] / fitting.get("ideal_s", np.nan)).mean()),
                "geometric_gap": float(np.expm1(np.log1p(gaps).mean())) if len(gaps) else np.nan,
                "num_best_family": _num_best_family(proven),
                "utilisation": float(group["utilisation"].mean()),
                "cost_bytes": float(group["cost_bytes"].mean()),
                **_against(rows, str(method), "search"),
                **_against(rows, str(method), POLICY),
            }
        )
    return pd.DataFrame(lines).sort_values(["gap", "method"], kind="stable")


def _num_best_family(rows: pd.DataFrame) -> float:
    """Plans of the family of the best row of their case; NaN where cases have none."""
    if "best_family" not in rows:
        return np.nan
    return float((rows["family"] == rows["best_family"]).sum())


def planners_left_out(rows: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Reasons why planners have no plan, by suite and method: how often, and the first one."""
    found: dict[str, dict[str, str]] = {}
    failed = rows[rows["error"].notna() & (rows["error"] != "")]
    for (suite, method), group in failed.groupby(["suite", "method"], sort=False):
        count = len(rows[(rows["suite"] == suite) & (rows["method"] == method)])
        reason = f"has no plan in {len(group)} of {count} cases: {group['error'].iloc[0]}"
        found.setdefault(str(suite), {})[str(method)] = reason
    return found


def dynamic_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per suite and rule, the least excess over the clairvoyant first.

    ``excess`` is a mean over worlds, so is its 95 % Student-t interval. ``over_best_rule`` compares
    with the rule that is best on the mean of the suite of those that foresee nothing, by bootstrap
    over worlds; ``over_best_searching`` likewise with the best of those that search in every epoch
    (`SEARCHING_NAMES`), where one was measured.
    """
    lines = []
    for suite, group in rows.groupby("suite", sort=False):
        best, searching = best_single_rule(group), best_searching_rule(group)
        for method, own in group.groupby("method", sort=True):
            excess = relative_by_world(
                own["time_s"].to_numpy(), own["best_s"].to_numpy(), own["world"].tolist()
            )
            interval = endless_or_mean(excess)
            lines.append(
                {
                    "suite": suite,
                    "method": method,
                    "num_worlds": len(excess),
                    "num_cases": len(own),
                    "excess": interval.mean,
                    "excess_half_width": interval.half_width,
                    "change_share": float((own["change_s"] / own["time_s"]).mean()),
                    "utilisation": float(own["utilisation"].mean()),
                    "cost_bytes_per_token": float(own["cost_bytes_per_token"].mean()),
                    **_against(group, str(method), best, "best_rule"),
                    **_against(group, str(method), searching, "best_searching"),
                    **_against(group, str(method), POLICY),
                }
            )
    table = pd.DataFrame(lines)
    return table.sort_values(["suite", "excess", "method"], kind="stable")


def best_single_rule(rows: pd.DataFrame) -> str:
    """Name the rule of least mean excess over the clairvoyant, the same one for all cases.

    Of rules that foresee plans (`foreseen_part`) and others, only the others count.

    Raises
    ------
    ValueError
        If there is no such rule.
    """
    excess = mean_excess(online_part(rows))
    if excess.empty:
        raise ValueError("comparison: rules must hold one besides the clairvoyant, got none")
    return str(excess.idxmin())


def best_searching_rule(rows: pd.DataFrame) -> str:
    """Name the best of the rules that search among all families in every epoch; "" without one."""
    excess = mean_excess(rows[rows["method"].isin(SEARCHING_NAMES)])
    return "" if excess.empty else str(excess.idxmin())


def online_part(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of rules that know neither later epochs nor plans for them; schedulers are no rules."""
    others = rows["method"].isin([CLAIRVOYANT, *DECIDERS, *DUELLISTS])
    return rows[~rows["method"].str.endswith(FORESEEN) & ~others]


def foreseen_part(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of rules that know all plans of a draw from its first epoch on, by their plain names."""
    part = rows[rows["method"].str.endswith(FORESEEN)]
    return part.assign(method=part["method"].str.removesuffix(FORESEEN))


def mean_excess(rows: pd.DataFrame) -> "pd.Series[float]":
    """Mean over cases of the time over that of the clairvoyant less 1, by rule."""
    excess = rows["time_s"] / rows["best_s"] - 1.0
    means: pd.Series[float] = excess.groupby(rows["method"]).mean()
    return means


def hindsight_excess(rows: pd.DataFrame) -> list[float]:
    """Excess of the rule that is best in each world, chosen when all is known; one a world.

    As for `best_single_rule`, only rules that foresee nothing count.
    """
    online = online_part(rows)
    excess = online["time_s"] / online["best_s"] - 1.0
    by_rule = excess.groupby([online["world"], online["method"]]).mean()
    return [float(value) for value in by_rule.groupby(level=0, sort=False).min()]


def _against(
    rows: pd.DataFrame, method: str, reference: str, label: str | None = None
) -> dict[str, object]:
    """Compare a method with another on the cases in which both have a time."""
    name = f"over_{label or reference}"
    times = rows.pivot_table(index=["world", "draw"], columns="method", values="time_s", sort=False)
    both = times.reindex(columns=list(dict.fromkeys([method, reference]))).dropna()
    values = [np.nan] * 4
    if not both.empty:
        found = paired_bootstrap(
            both[method].to_numpy(),
            both[reference].to_numpy(),
            [world for world, _ in both.index],
            rng=np.random.default_rng(_SEED),
        )
        values = [found.mean, found.low, found.high, found.p_value]
    return dict(zip((name, f"{name}_low", f"{name}_high", f"{name}_p"), values, strict=True))


_EVERY = "all"

_EDGES = (2, 5, 9, 11, 25, 10**9)
"""Bounds between groups of numbers of domains."""

_COLUMNS = ["suite", "plans", "binds", "num_worlds", "over_bound", "most"]


def bound_tightness(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per suite, kind of best plans, and what binds: how far these are over the bound.

    The best plan of a case is the quickest of its rows that fit. ``plans`` is its family, or the
    number of domains of the world, or all; ``binds`` is what adds most to the time of all domains
    at work (`agents.planners.bounds.step_bound.Binding`), or all. ``over_bound`` is the median of
    the time over the bound less 1, ``most`` the largest. What both hold cannot be told apart: the
    bound may be less than the best there is, or the plan more.
    """
    if "binds" not in rows:
        return pd.DataFrame(columns=_COLUMNS)
    bounded = rows[rows["fits_memory"].astype(bool) & rows["bound_s"].notna()]
    best = bounded[bounded["time_s"] == bounded["best_s"]]
    best = best.drop_duplicates(["suite", "world", "draw"])
    best = best.assign(over=best["time_s"] / best["bound_s"] - 1.0)
    ends = [f"{low} to {high - 1} domains" for low, high in pairwise(_EDGES[:-1])]
    ends.append(f"{_EDGES[-2]} or more domains")
    size = pd.cut(best["num_domains"], _EDGES, labels=ends, right=False)
    lines = []
    for suite, of_suite in best.groupby("suite", sort=False):
        every = pd.Series(_EVERY, index=of_suite.index)
        for kind in (every, of_suite["family"], size[of_suite.index]):
            for plans, own in of_suite.groupby(kind, observed=True):
                for binds in (_EVERY, "work", "fill", "memory", "bytes"):
                    over = own["over"] if binds == _EVERY else own["over"][own["binds"] == binds]
                    if len(over):
                        figures = float(over.median()), float(over.max())
                        lines.append((suite, plans, binds, len(over), *figures))
    return pd.DataFrame(lines, columns=_COLUMNS)


REFERENCE = "data_parallel"
"""Planner that has a copy of the model in every domain."""

EDGES = (0, 250_000, 1_000_000, 4_000_000, 10**12)
"""Bounds between groups of tokens a step."""


def saved_by_tokens(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per suite, method and group of tokens a step.

    ``saved`` is the median over cases of 1 less the bytes of an iteration over those of
    `REFERENCE`, negative where more are sent; ``least`` and ``most`` are over the same cases, in
    which both have a plan; ``num_more`` of these send more. Data parallelism sends the same
    gradients whatever the tokens, and a pipeline sends every token's activations, so one figure at
    one batch says little.
    """
    keys = ["suite", "world", "draw"]
    reference = rows.loc[rows["method"] == REFERENCE, [*keys, "cost_bytes"]]
    both = rows[rows["method"] != REFERENCE].merge(reference, on=keys, suffixes=("", "_reference"))
    both = both[both["is_same_training"].astype(bool) & both["fits_memory"].astype(bool)]
    both = both.assign(
        saved=1.0 - both["cost_bytes"] / both["cost_bytes_reference"],
        least_tokens=pd.cut(both["tokens_per_step"], EDGES, labels=EDGES[:-1], right=False),
    ).dropna(subset=["saved"])
    lines = [
        {
            "suite": suite,
            "method": method,
            "least_tokens": least,
            "num_cases": len(group),
            "saved": float(group["saved"].median()),
            "least": float(group["saved"].min()),
            "most": float(group["saved"].max()),
            "num_more": int((group["saved"] < 0.0).sum()),
        }
        for (suite, method, least), group in both.groupby(
            ["suite", "method", "least_tokens"], sort=False, observed=True
        )
    ]
    columns = ["suite", "method", "least_tokens", "num_cases", "saved", "least", "most", "num_more"]
    table = pd.DataFrame(lines, columns=columns)
    return table.sort_values(["suite", "method", "least_tokens"], kind="stable")
