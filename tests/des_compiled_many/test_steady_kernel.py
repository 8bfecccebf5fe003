"""Plans judged thousands at a time against the simulator, to the last bit, and cases by hand."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_plans import RULES, drawn_plans, judge_of, unequal_world, with_ample_memory
from law_strategies import movements
from strategies import corrections, topologies, unit_workload, workloads, world

from agents.judge.steady_judge import MISFIT, has_steady_plans
from des import Topology, Transport, domain_memory, simulate
from des.compiled.eligibility import is_foreseeable
from des.compiled.many.steady import Plans
from des.compiled.simulate import simulate_compiled
from des.costs.feasibility import tightest_domain
from des.job.transformer import BYTES_PER_PARAMETER


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
        assert is_steady == (movement is None and is_foreseeable(topology, plan))
    times_s = [simulate(topology, workload, judge.plan(plans, row)).makespan_s for row in range(6)]
    assert judge.scores(plans).tolist() == times_s


def test_only_the_simulator_of_des_is_compiled():
    def anybody_else(topology, workload, plan, found):
        return simulate(topology, workload, plan, found)

    simulators = (simulate, simulate_compiled, anybody_else)
    found = [has_steady_plans(unequal_world(), one) for one in simulators]
    assert found == [True, True, False]
