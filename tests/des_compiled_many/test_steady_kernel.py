"""Plans judged thousands at a time against the simulator, to the last bit, and cases by hand."""

import dataclasses
from itertools import permutations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    STATIC_SCHEDULES,
    corrections,
    movements,
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from agents.judge.search_judge import Judge
from agents.judge.splits import new_walk, walk_splits
from agents.judge.steady_judge import MISFIT, has_steady_plans
from des import (
    NO_CORRECTIONS,
    Topology,
    Transport,
    domain_memory,
    simulate,
)
from des.compiled.eligibility import is_foreseeable
from des.compiled.many.steady import Plans
from des.compiled.simulate import simulate_compiled
from des.costs.feasibility import tightest_domain
from des.job.transformer import BYTES_PER_PARAMETER

SCHEDULES = (*STATIC_SCHEDULES, "1f1b_2x", "1f1b_2.5x", "1f1b_4x", "1f1b_8x")
"""All that can be judged in compiled code, with depths among them."""


def judge_of(
    topology, workload, *, found=NO_CORRECTIONS, schedules=SCHEDULES, simulator=simulate, most=None
):
    return Judge(
        topology, workload, found, schedules=schedules, simulator=simulator, max_judged=most
    )


def drawn_plans(judge, seed, count):
    """Plans of any order, split and schedule, with one stage per domain."""
    rng = np.random.default_rng(seed)
    num_domains, most = judge.topology.num_domains, judge.most_stages
    num_layers = judge.workload.num_layers
    plans = Plans(
        num_stages=rng.integers(1, most + 1, count).astype(np.int32),
        schedule=rng.integers(0, len(judge.schedules), count).astype(np.int32),
        domain=np.array([rng.permutation(num_domains)[:most] for _ in range(count)], np.int32),
        end_layer=np.zeros((count, most), dtype=np.int32),
    )
    for row, num_stages in enumerate(plans.num_stages.tolist()):
        cuts = np.sort(rng.choice(num_layers - 1, num_stages - 1, replace=False) + 1)
        plans.end_layer[row, : num_stages - 1] = cuts
        plans.end_layer[row, num_stages - 1] = num_layers
    return plans


def with_ample_memory(topology):
    domains = tuple(
        dataclasses.replace(domain, gpu_memory_bytes=1e30) for domain in topology.domains
    )
    return dataclasses.replace(topology, domains=domains)


@settings(max_examples=examples(100))
@given(
    topology=topologies(fully=True, max_domains=5),
    workload=workloads(),
    window_bytes=st.none() | st.floats(1e5, 1e9),
    found=corrections(),
    seed=st.integers(0, 2**32 - 1),
)
def test_iteration_times_are_the_simulated_ones_to_the_last_bit(
    topology, workload, window_bytes, found, seed
):
    """Plans of all schedules, orders and numbers of stages in one batch, in any order."""
    transport = Transport(window_bytes=window_bytes)
    topology = dataclasses.replace(with_ample_memory(topology), transport=transport)
    judge = judge_of(topology, workload, found=found)
    plans = drawn_plans(judge, seed, 24)

    assert judge.are_steady(plans).all()
    times_s = [
        simulate(topology, workload, judge.plan(plans, row), found).makespan_s for row in range(24)
    ]
    assert judge.scores(plans).tolist() == times_s


@settings(max_examples=examples(50))
@given(
    topology=topologies(fully=True),
    workload=workloads(),
    share=st.sampled_from([0.2, 0.5, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_plans_fit_where_the_simulator_says_so_and_lack_what_it_says(
    topology, workload, share, seed
):
    job_bytes = (
        1.0 + BYTES_PER_PARAMETER * sum(workload.num_parameters) + sum(workload.activation_bytes)
    )
    domains = tuple(
        dataclasses.replace(domain, gpu_memory_bytes=share * job_bytes / domain.num_gpus)
        for domain in topology.domains
    )
    topology = dataclasses.replace(topology, domains=domains)
    judge = judge_of(topology, workload)
    plans = drawn_plans(judge, seed, 24)

    scores, num_fitting = judge.scores(plans).tolist(), 0
    for row, score in enumerate(scores):
        plan = judge.plan(plans, row)
        tightest = tightest_domain(domain_memory(topology, workload, plan))
        num_fitting += tightest.fits
        if tightest.fits:
            assert score == simulate(topology, workload, plan).makespan_s
        else:
            assert score == MISFIT * (1.0 + tightest.overflow_fraction)
    assert judge.num_judged == num_fitting


@pytest.mark.parametrize(
    ("schedule", "makespan_s"),
    [("1f1b", 612.0), ("1f1b_2x", 410.0), ("1f1b_4x", 212.0), ("gpipe", 212.0)],
)
def test_depth_hides_latency_by_hand(schedule, makespan_s):
    """Two stages of 1 s a pass, 5 microbatches, 100 s of flight each way, messages of no bytes.

    1F1B has two microbatches under way, for round trips of 204 s: B0 ends at 204, B2 at 408, B4 at
    612. At twice the depth there are three: F0 to F2 arrive at 101 to 103, B0 to B2 are back at
    203, 205 and 207 s, F3 and F4 leave at 205 and 207, and B4, behind F3, B3 and F4 from 305 s on,
    is made at 309, back at 409 and done at 410. At four times all five leave at once: B4 is
    made at 111 s, back at 211 and done at 212. So it is under GPipe, whose B4 is also the tenth
    pass of the second stage.
    """
    topology = world("AB", {"AB": (1.0, 100.0), "BA": (1.0, 100.0)})
    workload = unit_workload([(1, 1)] * 2, num_microbatches=5)
    judge = judge_of(topology, workload, schedules=(schedule,))
    plan = Plans(
        num_stages=np.array([2], np.int32),
        schedule=np.array([0], np.int32),
        domain=np.array([[0, 1]], np.int32),
        end_layer=np.array([[1, 2]], np.int32),
    )

    assert judge.scores(plan).tolist() == [makespan_s]


def unequal_world():
    """Three domains of 1, 2 and 3 FLOP/s with free links."""
    names = "ABC"
    links = world(names, {a + b: (1e300, 0.0) for a, b in permutations(names, 2)}).links
    domains = [
        unit_domain(name, flops_per_s=float(speed)) for speed, name in enumerate(names, start=1)
    ]
    return Topology.of(domains, links)


def filled(topology, workload, *, schedule="1f1b"):
    """The level and the ends of the stages over all domains in order."""
    judge = judge_of(topology, workload, schedules=(schedule,))
    count = judge.most_stages
    plan = Plans(
        num_stages=np.array([count], np.int32),
        schedule=np.array([0], np.int32),
        domain=np.arange(count, dtype=np.int32)[np.newaxis],
        end_layer=np.zeros((1, count), np.int32),
    )
    (level_s,) = judge.fill(plan)
    return level_s, plan.end_layer[0].tolist()


def test_water_finds_its_level_by_hand():
    """Twelve layers of 3 FLOPs over domains of 1, 2 and 3 FLOP/s: 2, 4 and 6 take 6 s each.

    The last stage works for 6 s on each of 1000 microbatches, 12 s of passes before and behind.
    """
    workload = unit_workload([(1, 2)] * 12, num_microbatches=1000)
    level_s, ends = filled(unequal_world(), workload)

    assert ends == [2, 6, 12]
    assert level_s == pytest.approx(6012.0, rel=1e-3)


def test_water_stays_below_the_brim_of_memory():
    """Of 2 to 4 layers the second domain holds 3: 16 bytes of state each, and 2 of activations."""
    topology = unequal_world()
    domains = list(topology.domains)
    domains[1] = dataclasses.replace(domains[1], gpu_memory_bytes=3 * 18.0)
    workload = unit_workload([(1, 2)] * 12, num_microbatches=1000)

    assert filled(Topology.of(domains, topology.links), workload)[1] == [2, 5, 12]
    level_s, ends = filled(Topology.of(domains, topology.links), workload, schedule="gpipe")
    assert ends[1] - ends[0] == 1  # a thousand microbatches leave room for none, but it gets one
    assert level_s == np.inf


def test_where_no_more_may_be_judged_scores_say_nothing():
    workload = unit_workload([(1, 2)] * 4, num_microbatches=2)
    judge = judge_of(unequal_world(), workload, most=3)
    plans = drawn_plans(judge, 0, 5)

    scores = judge.scores(plans)
    assert np.isfinite(scores).tolist() == [True] * 3 + [False] * 2
    assert (judge.num_judged, judge.num_left) == (3, 0)
    assert (judge.scores(plans) == np.inf).all()


# What compiled code judges.


RULES = [
    {},
    {"window_bytes": 1e6},
    {"sharing": "fair"},
    {"sharing": "none"},
    {"endpoints": "one_in_flight"},
    {"endpoints": "blocking"},
    {"half_duplex": True},
]


@settings(max_examples=examples(60))
@given(
    topology=topologies(max_domains=4),
    workload=workloads(),
    movement=st.none() | movements(outages=False),
    rules=st.sampled_from(RULES),
    seed=st.integers(0, 2**32 - 1),
)
def test_compiled_code_judges_what_is_foreseeable_and_stands_still(
    topology, workload, movement, rules, seed
):
    """And what it does not judge gets the simulator's times all the same, relays included."""
    topology = dataclasses.replace(
        with_ample_memory(topology), movement=movement, transport=Transport(**rules)
    )
    judge = judge_of(topology, workload, simulator=simulate_compiled)
    plans = drawn_plans(judge, seed, 6)

    for row, is_steady in enumerate(judge.are_steady(plans).tolist()):
        plan = judge.plan(plans, row)
        assert is_steady == (movement is None and is_foreseeable(topology, workload, plan))
    times_s = [simulate(topology, workload, judge.plan(plans, row)).makespan_s for row in range(6)]
    assert judge.scores(plans).tolist() == times_s


def test_only_the_simulator_of_des_is_compiled():
    def anybody_else(topology, workload, plan, found):
        return simulate(topology, workload, plan, found)

    simulators = (simulate, simulate_compiled, anybody_else)
    found = [has_steady_plans(unequal_world(), one) for one in simulators]
    assert found == [True, True, False]


# Walks through splits.


def all_splits(judge, order, schedule, limit_s, *, room=1000, most_steps=10**9):
    """All ends that a walk finds, a few at a time."""
    walk, found = new_walk(len(order), judge.workload.num_layers), []
    while walk.place[0] >= 0 and walk.place[1] < most_steps:
        ends = np.zeros((room, judge.most_stages), np.int32)
        count = walk_splits(
            judge.job,
            judge.programs,
            schedule * judge.most_stages + len(order) - 1,
            judge.schedules[schedule].startswith("zb"),
            np.array(order, np.int32),
            limit_s,
            most_steps,
            walk,
            ends,
        )
        found += [tuple(row) for row in ends[:count, : len(order)].tolist()]
    return found


def test_a_walk_without_a_limit_goes_through_all_splits():
    workload = unit_workload([(1, 2)] * 5, num_microbatches=2)
    judge = judge_of(unequal_world(), workload)

    splits = [(1, 2, 5), (1, 3, 5), (1, 4, 5), (2, 3, 5), (2, 4, 5), (3, 4, 5)]
    assert all_splits(judge, (2, 0, 1), 0, np.inf) == splits
    assert all_splits(judge, (2, 0, 1), 0, np.inf, room=1) == splits  # and goes on where it was
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
