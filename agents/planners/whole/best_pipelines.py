"""Quickest pipelines of searches over orders, over several microbatch sizes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.decision.families import Family
from agents.judge.paced_judge import Scored
from agents.planners.whole.search_parts import SearchPart
from des import Plan

NUM_ORDERS_MADE = 2
"""Best pipelines for which schedules that look at times are made."""


class FoundPipeline(NamedTuple):
    """Pipeline of a search, its time, and a lower bound over all orders of its passes. [s]"""

    time_s: float
    least_s: float
    part: SearchPart
    plan: Plan


def pipeline_rows(scored: Scored, kind: Family) -> np.ndarray:
    """Rows of pipelines of one domain, or of several."""
    return np.flatnonzero((scored.plans.num_stages == 1) == (kind == "single"))


def quickest_pipelines(
    looked_at: Sequence[tuple[SearchPart, Scored]], kind: Family
) -> list[FoundPipeline]:
    """Quickest pipelines of a kind that fit, of several sizes of microbatches."""
    fitting = [
        (float(scored.times_s[row]), part, scored.plans, int(row))
        for part, scored in looked_at
        for row in pipeline_rows(scored, kind)
        if np.isfinite(scored.times_s[row])
    ]
    fitting.sort(key=lambda each: each[0])
    return [
        FoundPipeline(time_s, part.judge.least_s(plans, row), part, part.judge.plan(plans, row))
        for time_s, part, plans, row in fitting[:NUM_ORDERS_MADE]
    ]
