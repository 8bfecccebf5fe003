"""Schedulers on their way through a draw, and planners that re-plan in every epoch."""

import dataclasses
import math
from itertools import permutations

import pytest
from epoch_cases import FOUR_LAYERS, FREE_PAIR, HandWorld, slowed
from strategies import plan, unit_domain, world

from agents.decision.levels import LEVELS, level_of
from agents.decision.run_epochs import CourseError, run_course
from agents.decision.situation import Decision
from agents.replanning.rules import Horizon
from agents.replanning.search_schedulers import replan, search_anew
from agents.replanning.tables import costs_of, tables_of, total_s
from des import InfeasiblePlacementError, Topology

WHOLE, HALVES, GPIPE = plan(0, 0, 0, 0), plan(0, 0, 1, 1), plan(0, 0, 1, 1, schedule="gpipe")
SECOND = plan(1, 1, 1, 1)


class Written:
    """A scheduler that takes plans as they are written down."""

    name = "written"

    def __init__(self, *plans):
        self.plans, self.seen = plans, []

    def begin(self):
        self.seen = []

    def decide(self, situation):
        self.seen.append(situation)
        chosen = self.plans[situation.epoch]
        return Decision(
            plan=chosen, level=level_of(situation.last_plan, chosen), response_s={"all": 0.5}
        )


# Courses.


def test_a_course_by_hand():
    """Halves take 12 s; to the whole model in one domain 1 + 4 s, then 16 s an iteration."""
    hand = HandWorld(epochs=(FREE_PAIR, slowed(0.5), FREE_PAIR))
    written = Written(HALVES, WHOLE, WHOLE)

    result = run_course(hand, 0, written)

    assert [row.num_iterations for row in result.rows] == [100 / 12, 95 / 16, 100 / 16]
    assert [row.change_s for row in result.rows] == [0.0, 5.0, 0.0]
    assert [row.moved_bytes for row in result.rows] == [0.0, 32.0, 0.0]
    assert [row.level for row in result.rows] == ["order", "order", "nothing"]
    done = 100 / 12 + 195 / 16
    assert result.total_s == pytest.approx(300 * 30 / done)
    assert result.moves == dict.fromkeys(LEVELS, 0) | {"nothing": 1, "order": 1}
    assert result.utilisation == pytest.approx(done * FOUR_LAYERS.flops_per_iteration / 600)
    assert result.bytes_per_token == pytest.approx(32 / (done * 2))
    assert [one.last_plan for one in written.seen] == [None, HALVES, WHOLE]
    assert result.rows[0].response_s == {"all": 0.5}


def test_a_course_costs_what_the_tables_say():
    hand = HandWorld(epochs=(FREE_PAIR, slowed(0.5), slowed(0.7), FREE_PAIR))
    job = dataclasses.replace(FOUR_LAYERS, message_bytes=2.0)
    hand = dataclasses.replace(hand, workload=job)
    plans, path = [WHOLE, HALVES, GPIPE], [1, 0, 2, 1]

    result = run_course(hand, 0, Written(*(plans[index] for index in path)))

    costs = costs_of(tables_of(hand, 0, plans), path)
    assert result.total_s == pytest.approx(costs.total_s)
    assert result.change_s == pytest.approx(costs.change_s)
    assert result.utilisation == pytest.approx(costs.utilisation)
    assert result.bytes_per_token == pytest.approx(costs.bytes_per_token)
    assert result.moves == costs.moves


@pytest.mark.parametrize(
    ("network", "decided", "reason"),
    [
        (world("AB", {}), HALVES, "no path of links joins A -> B"),
        (world("AB", {}), SECOND, "no path of links joins A -> B"),
        (FREE_PAIR, plan(0, 0, 1), "4 layers"),
        (
            Topology.of([unit_domain("A"), unit_domain("B", memory_bytes=9.0)], FREE_PAIR.links),
            HALVES,
            "B",
        ),
    ],
)
def test_a_decision_that_cannot_be_taken_is_refused_with_its_reason(network, decided, reason):
    """Links or memory that are there no longer, and plans of another job."""
    hand = HandWorld(epochs=(FREE_PAIR, network))

    with pytest.raises(CourseError, match=f"written on world by hand.* epoch 1 .*: .*{reason}"):
        run_course(hand, 7, Written(WHOLE, decided))


def test_a_plan_without_room_can_be_judged_as_if_it_had_it():
    small = Topology.of([unit_domain("A", memory_bytes=9.0), unit_domain("B")], FREE_PAIR.links)
    hand = HandWorld(epochs=(small,))

    result = run_course(hand, 0, Written(WHOLE), must_fit=False)

    assert not result.rows[0].fits_memory
    assert result.total_s == 160.0


# Planners called in every epoch.


def best_of_two(problem, rng):
    """Proposes the whole model in the first domain or halves, whichever is quicker."""
    return min((HALVES, WHOLE), key=lambda one: problem.judge(one).makespan_s)


@pytest.mark.parametrize(
    ("horizon", "plans"),
    [
        (0.0, [HALVES, HALVES, HALVES]),
        (0.24, [HALVES, HALVES, HALVES]),
        (0.26, [HALVES, WHOLE, HALVES]),
        (math.inf, [HALVES, WHOLE, HALVES]),
    ],
)
def test_a_proposal_is_taken_where_it_pays_within_the_horizon(horizon, plans):
    """A change takes 5 s of 100 and saves a fifth or a fourth: a quarter of an epoch pays."""
    hand = HandWorld(epochs=(FREE_PAIR, slowed(0.5), FREE_PAIR))

    result = run_course(hand, 0, replan(best_of_two, horizon_epochs=horizon))

    assert [row.plan for row in result.rows] == plans


def test_the_first_plan_is_free_but_chosen_as_if_it_was_not():
    """From halves, which are best at base figures, a quarter of an epoch pays for the change."""
    hand = HandWorld(epochs=(slowed(0.5),))

    firsts = [
        run_course(hand, 0, replan(best_of_two, horizon_epochs=horizon)).rows[0]
        for horizon in (0.24, 0.26)
    ]

    assert [row.plan for row in firsts] == [HALVES, WHOLE]
    assert [row.change_s for row in firsts] == [0.0, 0.0]


def test_another_depth_of_the_plan_in_force_costs_the_restart_alone():
    """Where links are slow GPipe of the same halves is quicker, and only 1 s away."""
    job = dataclasses.replace(FOUR_LAYERS, num_microbatches=8, message_bytes=1.0)
    slow = world("AB", dict.fromkeys(("AB", "BA"), (0.25, 3.0)))
    hand = HandWorld(epochs=(FREE_PAIR, slow), workload=job, topology=FREE_PAIR)
    stubborn = replan(lambda problem, rng: HALVES, horizon_epochs=1.0)

    rows = run_course(hand, 0, stubborn).rows

    assert [row.level for row in rows] == ["order", "depth"]
    assert rows[1].change_s == 1.0
    assert rows[1].iteration_s < tables_of(hand, 0, [HALVES]).iteration_s[1, 0]


def test_who_finds_no_plan_keeps_the_last_and_says_so():
    def once(problem, rng):
        if problem.topology != FREE_PAIR:
            raise InfeasiblePlacementError("search: no plan was found that fits")
        return HALVES

    hand = HandWorld(epochs=(FREE_PAIR, slowed(0.5)))

    result = run_course(hand, 0, replan(once, horizon_epochs=1.0))

    assert [row.is_fallback for row in result.rows] == [False, True]
    assert result.rows[1].plan.placement == HALVES.placement
    assert result.num_fallbacks == 1


def test_a_plan_that_works_no_longer_is_left_for_one_that_does():
    """The second domain loses its memory: even who would rather hold goes to the first one."""
    small = Topology.of([unit_domain("A"), unit_domain("B", memory_bytes=9.0)], FREE_PAIR.links)
    hand = HandWorld(epochs=(FREE_PAIR, small))

    result = run_course(hand, 0, replan(search_anew, horizon_epochs=0.0))

    assert set(result.rows[0].plan.placement.domain_of_layer) == {0, 1}
    assert set(result.rows[1].plan.placement.domain_of_layer) == {0}


@pytest.mark.parametrize("horizon", [-1.0, math.nan])
def test_a_horizon_is_not_negative(horizon):
    with pytest.raises(ValueError, match="horizon_epochs must be at least 0"):
        replan(best_of_two, horizon_epochs=horizon)


def test_a_rule_on_tables_and_a_planner_asked_anew_decide_alike():
    """With two plans to choose from and one schedule, the horizon is the same horizon."""
    links = {"".join(ends): (8.0, 0.0) for ends in permutations("AB", 2)}
    hand = HandWorld(
        epochs=tuple(
            dataclasses.replace(slowed(factor), links=world("AB", links).links)
            for factor in (1.0, 0.5, 0.9, 0.3, 1.0)
        )
    )
    tables = tables_of(hand, 0, [HALVES, WHOLE])

    for horizon in (0.1, 0.5, 2.0):
        asked = dataclasses.replace(
            replan(best_of_two, horizon_epochs=horizon), schedules=(HALVES.schedule,)
        )
        path = Horizon(horizon)(tables)
        assert run_course(hand, 0, asked).total_s == pytest.approx(total_s(tables, path))
