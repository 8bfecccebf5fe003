"""Orders of domains in the splits and under the schedules that suit a network."""

from collections.abc import Sequence

import numpy as np

from agents.judge.steady_judge import SteadyJudge
from agents.planners.search.search_moves import Order, joined, plans_of_orders, resplits
from des.compiled.many.layout import Whole
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Job, Plans

_NUM_DESCENDED = 4
_MOST_STEPS = 32


def best_splits(judge: SteadyJudge, job: Job, orders: Sequence[Order]) -> Plans:
    """Fill each order under all schedules; returns the best of each, order by order."""
    num_schedules = len(judge.schedules)
    plans = plans_of_orders(orders, range(num_schedules), judge.most_stages)
    judge.fill(job, plans)
    scores = judge.scores(job, plans).reshape(len(orders), num_schedules)
    return plan_rows(plans, np.arange(len(orders)) * num_schedules + scores.argmin(axis=1))


def descended(judge: SteadyJudge, job: Job, plans: Plans, first: int) -> Plans:
    """Move layers, and change schedules, as long as that helps: of one plan and of the best few.

    A step goes to the best of `agents.planners.search.search_moves.resplits`.
    """
    best = np.argsort(judge.scores(job, plans), kind="stable")[:_NUM_DESCENDED].tolist()
    ends = []
    for row in dict.fromkeys([first, *best]):
        here = plan_rows(plans, np.array([row]))
        for _ in range(_MOST_STEPS):
            near = resplits(here, 0, len(judge.schedules))
            scores = judge.scores(job, joined([here, near]))
            step = int(scores.argmin())
            if step == 0 or not scores[step] < scores[0]:
                break
            here = plan_rows(near, np.array([step - 1]))
        ends.append(here)
    return joined(ends)


def unique_rows(plans: Plans, known_from: Whole) -> tuple[Plans, Whole]:
    """Keep each plan once, in order of first occurrence; unused fields are 0.

    Of equal ones the least of ``known_from``, (N,), counts.
    """
    is_stage = np.arange(plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
    domain, end_layer = plans.domain * is_stage, plans.end_layer * is_stage
    keys = np.column_stack([plans.num_stages, plans.schedule, domain, end_layer])
    _, first, places = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    least = known_from[first]
    np.minimum.at(least, places.ravel(), known_from)
    clean = plans._replace(domain=domain.astype(np.int32), end_layer=end_layer.astype(np.int32))
    in_order = np.argsort(first)
    return plan_rows(clean, first[in_order]), least[in_order]
