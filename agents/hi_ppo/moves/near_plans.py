"""Plans next to one: borders between its domains moved by a few layers."""

from functools import lru_cache
from itertools import product
from math import comb

import numpy as np

from agents.judge.look_ahead import PlanJudge
from des import Plan
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import Job, Plans

_MOST_SHIFTS, _FURTHEST = 2000, 6
_LAYERS_OF_A_STEP = (1, 2, 3)


def near_plans(
    judge: PlanJudge, job: Job, plan: Plan, limit_s: float, most: int = 24
) -> tuple[Plan, ...]:
    """Return the plans of short enough iterations that the fewest moved parameters lead to.

    Borders between the domains of ``plan`` move under its schedule, all by steps of 1, 2 or 3
    layers, at most 6 steps together and fewer where more plans than 2000 a step would be judged.

    Parameters
    ----------
    limit_s
        Longest iteration. [s]
    most
        Maximum plans returned.
    """
    num_borders = len(plan.placement.stages) - 1
    if num_borders == 0 or not judge.can_hold(plan):
        return ()
    written = judge.plans_of([plan])
    old, num_layers = written.end_layer[0, :num_borders].astype(np.int64), judge.workload.num_layers
    shifts = _shifts(num_borders)
    borders = np.unique(old + np.concatenate([n * shifts for n in _LAYERS_OF_A_STEP]), axis=0)
    edges = np.pad(borders, ((0, 0), (1, 1)), constant_values=((0, 0), (0, num_layers)))
    borders = borders[(np.diff(edges, axis=1) > 0).all(axis=1)]
    plans = Plans(*(np.repeat(field, len(borders), axis=0) for field in written))
    plans.end_layer[:, :num_borders] = borders
    times_s = judge.scores(job, plans)
    rows = np.flatnonzero(times_s <= limit_s)
    moved = _count_moved_parameters(judge, old, borders[rows])
    rows = rows[np.lexsort((times_s[rows], moved))][:most]
    return tuple(judge.plan(plans, row) for row in rows.tolist())


def _count_moved_parameters(judge: PlanJudge, old: Whole, borders: Whole) -> Real:
    """Parameters between old and new borders, (N,)."""
    before = np.concatenate(([0.0], np.cumsum(judge.workload.num_parameters)))
    moved: Real = np.abs(before[borders] - before[old]).sum(axis=1)
    return moved


@lru_cache(maxsize=32)
def _shifts(num_borders: int) -> Whole:
    """Steps of all borders together: all that are few enough, (N, B)."""
    reach = max(each for each in range(1, _FURTHEST + 1) if _is_few(num_borders, each))
    found = layer = {(0,) * num_borders}
    for _ in range(reach):
        layer = {
            (*shift[:at], shift[at] + way, *shift[at + 1 :])
            for shift, at, way in product(layer, range(num_borders), (-1, 1))
        } - found
        found = found | layer
    return np.array(sorted(found), dtype=np.int64)


def _is_few(num_borders: int, reach: int) -> bool:
    """Whether this number of steps, or less, can be taken in few enough ways."""
    ways = (2**n * comb(num_borders, n) * comb(reach, n) for n in range(num_borders + 1))
    return reach == 1 or sum(ways) <= _MOST_SHIFTS
