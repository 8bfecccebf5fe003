"""All plans that are about as quick as the best one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from agents.decision.depths import DEPTHS
from agents.judge.search_judge import Judge
from agents.judge.splits import walk_splits
from agents.planners.search.search import search
from agents.planners.search.search_moves import Order, all_orders
from des import NO_CORRECTIONS, Plan, Topology, Workload
from des.compiled.many.steady import Plans
from des.compiled.simulate import simulate_compiled

NEAR = 1e-3
"""Within this share of the best time a plan is as good."""

MOST_PLANS = 200_000
"""Most plans that a bound may leave over; a case with more counts as too large."""

_MOST_STEPS = 200_000_000  # of one walk
_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class NearOptimal:
    """The proven best time, and every plan within `NEAR` of it; the best plan comes first."""

    makespan_s: float
    plans: tuple[Plan, ...]


def near_optimal(
    topology: Topology,
    workload: Workload,
    *,
    schedules: Sequence[str] = DEPTHS,
    near: float = NEAR,
    max_judged: int | None = None,
) -> NearOptimal | None:
    """Enumerate the plans within a share of the proven best; None where there is no proof.

    One stage per domain, links that stand still; up to 6 domains, see
    `agents.planners.search.search`.

    Parameters
    ----------
    max_judged
        Budget of the proof, in plans.

    Notes
    -----
    All splits of all orders under all schedules of which no lower bound is above the limit are
    judged (`agents.judge.splits`), so none within it is missed.
    """
    found = search(topology, workload, schedules=schedules, is_exact=True, max_judged=max_judged)
    if not found.is_proven:
        return None
    judge = Judge(
        topology,
        workload,
        NO_CORRECTIONS,
        schedules=schedules,
        simulator=simulate_compiled,
        max_judged=MOST_PLANS,
    )
    limit_s = found.makespan_s * (1.0 + near)
    near_plans: list[tuple[float, int, Plan]] = []
    for order in all_orders(topology.num_domains, judge.most_stages):
        if not all(judge.can_reach[pair] for pair in pairwise(order)):
            continue
        for plans in _plans_below(judge, order, limit_s):
            if plans is None:
                return None
            scores = judge.scores(plans)
            if judge.num_left <= 0:
                return None
            for row in np.flatnonzero(scores <= limit_s).tolist():
                near_plans.append((float(scores[row]), len(near_plans), judge.plan(plans, row)))
    near_plans.sort(key=lambda each: each[:2])
    return NearOptimal(makespan_s=found.makespan_s, plans=tuple(plan for *_, plan in near_plans))


def _plans_below(judge: Judge, order: Order, limit_s: float) -> Iterator[Plans | None]:
    """Yield the plans over an order of which no bound is above the limit; None if too many."""
    size = len(order)
    row = np.zeros((1, judge.most_stages), dtype=np.int32)
    row[0, :size] = order
    ends = np.zeros((_AT_ONCE, judge.most_stages), dtype=np.int32)
    for schedule in range(len(judge.schedules)):
        walk = judge.walk(order, schedule)
        while walk.place[0] >= 0:
            count = walk_splits(walk, limit_s, _MOST_STEPS, ends)
            if walk.place[1] >= _MOST_STEPS:
                yield None
                return
            yield Plans(
                num_stages=np.full(count, size, dtype=np.int32),
                schedule=np.full(count, schedule, dtype=np.int32),
                domain=np.repeat(row, count, axis=0),
                end_layer=ends[:count].copy(),
            )
