"""Every target by its definition, on cases that can be worked out by hand."""

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from epoch_cases import FREE_PAIR, HandWorld
from hypothesis import given
from hypothesis import strategies as st
from strategies import plan, unit_workload, world

from agents.decision.frozen_network import freeze_topologies
from agents.decision.levels import level_of
from agents.decision.run_epochs import CourseResult, CourseRow, run_course
from agents.decision.situation import Decision
from agents.planners.search.search_moves import all_orders
from agents.replanning.search_schedulers import HoldPlan, PlanEveryEpoch
from des import NO_CORRECTIONS, Corrections, Placement, Plan, simulate
from scenarios.study.targets.allocation import near_optimal, share_error
from scenarios.study.targets.ranking import Ranking
from scenarios.study.targets.references import best_single_domain, in_one_domain, least_path
from scenarios.study.targets.stability import stable_epochs
from scenarios.study.targets.versus_rules import (
    RuleComparison,
    behind_hindsight,
    best_single,
    in_hindsight,
    less,
    world_means,
)

LEFT, RIGHT, SPLIT = plan(0, 0, 0, 0), plan(1, 1, 1, 1), plan(0, 0, 1, 1)


class Script:
    """A scheduler that follows a list of plans."""

    def __init__(self, *plans):
        self._plans = plans

    def begin(self):
        """Nothing is remembered."""

    def decide(self, situation):
        chosen = self._plans[situation.epoch]
        return Decision(plan=chosen, level=level_of(situation.last_plan, chosen))


def record(iteration_s, *, fits=True):
    return CourseRow(
        epoch=0,
        plan=LEFT,
        level="nothing",
        iteration_s=iteration_s,
        num_iterations=1.0 / iteration_s,
        cost_bytes=0.0,
        utilisation=0.5,
        fits_memory=fits,
        change_s=0.0,
        moved_bytes=0.0,
        is_fallback=False,
        decision_s=0.0,
        response_s={},
    )


def test_an_episode_is_charged_for_its_iterations_and_its_moves():
    """100 s of iterations of 16 s, then 91: 4 layers of 16 bytes at 8 bytes/s, a restart of 1 s.

    The 64 bytes that move are shared by 2 tokens an iteration; one of two domains works all the
    time but for the 9 s of the move.
    """
    hand = HandWorld(epochs=(FREE_PAIR,) * 2)
    episode = run_course(hand, 0, Script(LEFT, RIGHT), must_fit=False)

    assert episode.total_s == pytest.approx(200 * 20 / (191 / 16))
    assert episode.bytes_per_token == pytest.approx(64 / (191 / 16 * 2))
    assert episode.utilisation == pytest.approx(0.5 * 191 / 200)
    assert [epoch.change_s for epoch in episode.rows] == [0.0, 9.0]
    assert episode.rows[1].level == "order"


def test_single_domain_is_the_best_that_may_move_for_its_price():
    """The left domain is twice as quick in the first epoch, the right one in the other two.

    An iteration takes 8 or 16 s. Moving leaves 100, 91 and 100 s of the quick one: more than to
    stay left, one epoch of it, or right, two.
    """
    left_first = world_of_speeds(2.0, 1.0)
    right_first = world_of_speeds(1.0, 2.0)

    world = HandWorld(epochs=(left_first, right_first, right_first))

    plans = [in_one_domain(domain, world.workload) for domain in (0, 1)]

    single = best_single_domain(world, freeze_topologies(world, 0), plans)

    assert single.total_s == pytest.approx(300 * 30 / (291 / 8))
    assert single.domains == (0, 1, 1)
    assert single.fits_memory


def world_of_speeds(left, right):
    domains = tuple(
        replace(domain, gpu_peak_flops_per_s=speed)
        for domain, speed in zip(FREE_PAIR.domains, (left, right), strict=True)
    )
    return replace(FREE_PAIR, domains=domains)


@given(
    epoch_s=st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=4),
    moves=st.tuples(*[st.integers(0, 9)] * 6),
)
def test_the_least_path_is_the_least_of_all_paths(epoch_s, moves):
    times = np.array(epoch_s, dtype=float)
    change = np.zeros((3, 3))
    change[~np.eye(3, dtype=bool)] = moves
    changes = np.broadcast_to(change, (len(times), 3, 3))

    path, total_s = least_path(times, changes)

    def cost(steps):
        stay = sum(times[epoch, step] for epoch, step in enumerate(steps))
        return stay + sum(change[step] for step in pairwise(steps))

    assert total_s == cost(path) == min(map(cost, product(range(3), repeat=len(times))))


def test_the_allocation_error_is_to_the_nearest_plan():
    """Shares 3/4, 1/4, 0 against 1/2, 1/2, 0 and 0, 0, 1: a mean of 1/6 to the first one."""
    own, near, far = plan(0, 0, 0, 1), plan(0, 0, 1, 1), plan(2, 2, 2, 2)

    assert share_error(own, [near, far], 3) == pytest.approx(1 / 6)
    assert share_error(own, [far, own], 3) == 0.0


@pytest.mark.parametrize("near", [0.0, 0.05, 0.3])
def test_near_optimal_plans_are_those_of_full_enumeration(near):
    """All orders, splits and depths of 3 domains and 5 layers, one by one."""
    job = unit_workload([(1, 1), (1, 2), (2, 1), (1, 1), (1, 2)], num_microbatches=4)
    links = {"AB": (2.0, 0.5), "BA": (2.0, 0.5), "BC": (1.0, 1.0), "CB": (1.0, 1.0)}
    topology = world("ABC", links | {"AC": (4.0, 0.1), "CA": (4.0, 0.1)})
    schedules = ("1f1b", "gpipe")
    times = {
        one: simulate(topology, job, one, NO_CORRECTIONS).makespan_s
        for order in all_orders(3, 3)
        for counts in splits(5, len(order))
        for one in (
            Plan(placement=Placement.contiguous(order, counts), schedule=name) for name in schedules
        )
    }
    best_s = min(times.values())

    found = near_optimal(topology, job, schedules=schedules, near=near)

    assert found is not None
    assert found.makespan_s == best_s
    assert set(found.plans) == {one for one, at_s in times.items() if at_s <= best_s * (1 + near)}
    assert times[found.plans[0]] == best_s


def splits(num_layers, parts):
    if parts == 1:
        return [(num_layers,)]
    return [
        (first, *rest)
        for first in range(1, num_layers - parts + 2)
        for rest in splits(num_layers - first, parts - 1)
    ]


def test_an_optimum_without_a_proof_is_none():
    job = unit_workload([(1, 1)] * 5, num_microbatches=4)
    topology = world("AB", {"AB": (2.0, 0.5), "BA": (2.0, 0.5)})

    assert near_optimal(topology, job, max_judged=1) is None


def test_an_epoch_is_stable_within_a_tenth_of_the_best_if_it_fits():
    episode = CourseResult(
        world="hand",
        draw_seed=0,
        scheduler="hand",
        epoch_s=1.0,
        iterations_per_epoch=1,
        tokens_per_iteration=1,
        rows=(record(1.1), record(1.2), record(1.0, fits=False)),
    )

    assert stable_epochs(episode, [1.0, 1.0, 1.0]) == (True, False, False)


def test_kendalls_tau_counts_pairs_that_are_apart():
    """Pairs (1, 2), (1, 3) agree, (2, 3) does not: 1/3; what is within 1 % has no order."""
    assert Ranking(ours_s=(1.0, 2.0, 3.0), theirs_s=(1.0, 3.0, 2.0)).tau == pytest.approx(1 / 3)
    assert Ranking(ours_s=(1.0, 1.005), theirs_s=(2.0, 1.0)).tau == 1.0
    assert Ranking(ours_s=(1.0, 2.0), theirs_s=(1.0, 1.0)).tau == -1.0
    assert Ranking(ours_s=(1.0, 1.005, 2.0), theirs_s=(3.0, 1.0, 2.0)).has_same_winner
    assert not Ranking(ours_s=(1.0, 2.0), theirs_s=(2.0, 1.0)).has_same_winner


def test_one_rule_for_all_worlds_is_told_from_the_best_of_each():
    """Means over worlds, not over draws: a has two draws, b has one."""
    draws = [
        RuleComparison(
            world=name, own=own, rules={"H1": h1, "H8": h8}, decision_s=1.0, search_s=2.0
        )
        for name, own, h1, h8 in [
            ("a", 0.1, 0.0, 0.3),
            ("a", 0.3, 0.2, 0.1),
            ("b", 0.0, 0.5, 0.1),
        ]
    ]

    rules = [one.rules for one in draws]

    assert world_means(draws, [one.own for one in draws]) == pytest.approx([0.2, 0.0])
    assert best_single(draws, rules) == "H8"  # 0.2 and 0.1 against 0.1 and 0.5
    assert less(draws, rules, "H8") == pytest.approx([-0.2, 0.2, -0.1])
    assert in_hindsight(draws, rules) == pytest.approx({"a": 0.1, "b": 0.1})
    assert behind_hindsight(draws, rules)[0] == pytest.approx(0.0)  # 0.2 - 0.1 and 0 - 0.1
    assert best_single([], []) == ""


def test_a_held_plan_is_that_of_base_figures():
    """The base world is even, the first epoch has a slow left domain."""
    lopsided = world_of_speeds(0.1, 1.0)
    hand = HandWorld(epochs=(lopsided, FREE_PAIR))

    episode = run_course(hand, 0, HoldPlan(), must_fit=False)

    assert episode.plans[0] == episode.plans[1]
    assert set(episode.plans[0].placement.domain_of_layer) == {0, 1}


def test_planning_every_epoch_moves_where_that_pays():
    """The left domain all but stops after an epoch: two of three epochs are lost to who holds."""
    hand = HandWorld(epochs=(FREE_PAIR, world_of_speeds(0.01, 1.0), world_of_speeds(0.01, 1.0)))

    held, moved, greedy = (
        run_course(hand, 0, scheduler, must_fit=False)
        for scheduler in (HoldPlan(), PlanEveryEpoch(1.0), PlanEveryEpoch(math.inf))
    )

    assert moved.total_s < 0.5 * held.total_s
    assert set(moved.plans[1].placement.domain_of_layer) == {1}
    assert greedy.plans[1].placement == moved.plans[1].placement
    with pytest.raises(ValueError, match="horizon_epochs must be positive, got 0"):
        PlanEveryEpoch(0)


def test_planning_every_epoch_charges_moves_on_the_corrected_links():
    """A move that pays at the links' own speed does not where they are found to be 1e4 slower."""
    hand = HandWorld(epochs=(FREE_PAIR, *[world_of_speeds(0.5, 1.0)] * 3))

    moved = run_course(hand, 0, PlanEveryEpoch(1.0), must_fit=False)
    stays = run_course(
        hand,
        0,
        PlanEveryEpoch(1.0),
        must_fit=False,
        corrections=Corrections(wan_bandwidth_factor=1e-4),
    )

    assert moved.change_s > 0.0
    assert stays.change_s == 0.0
