"""Walks through all splits of layers: what they leave out, and what never."""

import dataclasses

import numpy as np
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_plans import RULES, SCHEDULES, drawn_plans, judge_of, unequal_world, with_ample_memory
from strategies import corrections, topologies, unit_workload, workloads, world

from agents.judge.splits import walk_splits
from des import Topology, Transport
from des.compiled.simulate import simulate_compiled


def all_splits(judge, order, schedule, limit_s, *, room=1000, most_steps=10**9):
    """All ends that a walk finds, a few at a time."""
    walk, found = judge.walk(order, schedule), []
    while walk.place[0] >= 0 and walk.place[1] < most_steps:
        ends = np.zeros((room, judge.most_stages), np.int32)
        count = walk_splits(walk, limit_s, most_steps, ends)
        found += [tuple(row) for row in ends[:count, : len(order)].tolist()]
    return found


def test_a_walk_without_a_limit_goes_through_all_splits():
    workload = unit_workload([(1, 2)] * 5, num_microbatches=2)
    judge = judge_of(unequal_world(), workload)

    splits = [(1, 2, 5), (1, 3, 5), (1, 4, 5), (2, 3, 5), (2, 4, 5), (3, 4, 5)]
    assert all_splits(judge, (2, 0, 1), 0, np.inf) == splits
    assert all_splits(judge, (2, 0, 1), 0, np.inf, room=1) == splits  # and continues where it was
    assert all_splits(judge, (1,), 0, np.inf) == [(5,)]
    assert all_splits(judge, (2, 0, 1), 0, np.inf, most_steps=3) == [(1, 2, 5)]


@settings(max_examples=examples(100))
@given(
    topology=topologies(max_domains=4, fully=True),
    workload=workloads(),
    rules=st.sampled_from(RULES),
    found=corrections(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_walk_leaves_out_no_plan_that_is_as_quick_as_the_limit(
    topology, workload, rules, found, seed
):
    """Under any transport, schedule and order; so no bound is above the simulated time."""
    topology = dataclasses.replace(with_ample_memory(topology), transport=Transport(**rules))
    judge = judge_of(topology, workload, found=found, simulator=simulate_compiled)
    plans = drawn_plans(judge, seed, 6)

    for row, limit_s in enumerate(judge.scores(plans).tolist()):
        size = int(plans.num_stages[row])
        order, ends = plans.domain[row, :size].tolist(), plans.end_layer[row, :size].tolist()
        assert tuple(ends) in all_splits(judge, order, int(plans.schedule[row]), limit_s)


def test_a_walk_leaves_out_what_is_surely_slower_and_what_does_not_fit():
    """Two domains of 1 FLOP/s with free links, four layers of 3 FLOPs, 100 microbatches.

    Even, it takes 606 s; with three layers in one domain at least 900 s.
    """
    topology = world("AB", dict.fromkeys(("AB", "BA"), (1e300, 0.0)))
    workload = unit_workload([(1, 2)] * 4, num_microbatches=100)
    judge = judge_of(topology, workload)
    assert all_splits(judge, (0, 1), SCHEDULES.index("1f1b"), 606.0) == [(2, 4)]
    assert all_splits(judge, (0, 1), SCHEDULES.index("1f1b"), 605.0) == []

    small = dataclasses.replace(topology.domains[1], gpu_memory_bytes=17.0)
    judge = judge_of(Topology.of([topology.domains[0], small], topology.links), workload)
    assert all_splits(judge, (0, 1), SCHEDULES.index("1f1b"), np.inf) == [(3, 4)]
