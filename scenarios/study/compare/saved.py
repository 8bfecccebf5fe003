"""Communication saved against data parallelism, by tokens a step."""

import pandas as pd

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
