"""Distance of the best plans from the proven bound, by family, size and regime of a world."""

from itertools import pairwise

import pandas as pd

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
                        line = (
                            suite,
                            plans,
                            binds,
                            len(over),
                            float(over.median()),
                            float(over.max()),
                        )
                        lines.append(dict(zip(_COLUMNS, line, strict=True)))
    return pd.DataFrame(lines, columns=_COLUMNS)
