"""Judging planners on held-out draws."""

import dataclasses

import numpy as np
import pytest

from agents.decision.problem import PlanningProblem
from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import make_task
from agents.flat.episode import Episode
from agents.planners.table import PLANNERS
from des import Placement, Plan, build_workload, moved_bytes, read_topology, simulate
from des.base.random_numbers import derive_seed
from des.plan.replacement import RESTART_S, Replacement
from scenarios.train.evaluation import evaluation_frame, hold_out_draws, judge_planners
from scenarios.train.outcome import verdict_on

TASK = make_task(
    topology=read_topology("east_central_west"),
    workload=build_workload("llama2_7b", num_microbatches=4),
    actions="order_split",
)
EVEN = TASK.uniform_placement
DRAWS = hold_out_draws(TASK, num_draws=3, seed=5)


def test_draws_follow_from_their_seed():
    again = hold_out_draws(TASK, num_draws=3, seed=5)
    other = hold_out_draws(TASK, num_draws=3, seed=6)

    assert [draw.topology for draw in again] == [draw.topology for draw in DRAWS]
    assert not {draw.topology for draw in other} & {draw.topology for draw in DRAWS}


def test_a_draw_depends_on_the_seed_and_its_index_alone():
    """In a stream of its own, which recorded figures rest on."""
    more = hold_out_draws(TASK, num_draws=5, seed=5)
    for index, draw in enumerate(more):
        episode = Episode(TASK)
        episode.begin(int(derive_seed(5, index, 0xE7A1)))
        assert (draw.base_world, draw.topology) == (episode.base_world, episode.topology)

    assert [draw.topology for draw in more[:3]] == [draw.topology for draw in DRAWS]
    assert len({draw.topology for draw in more}) == 5


def test_no_draw_is_one_that_a_training_of_the_same_seed_sees():
    """Eight environments, a whole episode each and the beginning of the next."""
    seen = set()
    with BatchedPlacementEnv(TASK, num_envs=8, seed=5) as environment:
        observations = environment.reset()
        action = np.zeros((8, len(environment.action_sizes)), dtype=np.int64)
        for _ in range(TASK.epochs_per_episode + 1):
            seen |= {observation[:18].tobytes() for observation in observations}
            observations = environment.step(action).observations

    held_out = {TASK.observe(d.topology, TASK.uniform_placement)[:18].tobytes() for d in DRAWS}
    assert not seen & held_out


def test_each_decision_finds_the_layers_where_the_last_one_has_put_them():
    found: list[Plan | None] = []

    def one_domain_after_another(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        found.append(problem.last_plan)
        return problem.plan(Placement(domain_of_layer=(len(found) % 3,) * 32))

    placements = [
        one.placement for one in judge_planners(TASK, "ours", one_domain_after_another, DRAWS)
    ]

    warm_up, first, *others = found
    assert warm_up is None
    assert first == TASK.plan(TASK.uniform_placement)
    assert others == [TASK.plan(placement) for placement in placements[:-1]]


def test_a_plan_that_the_task_cannot_run_is_refused():
    def deeper(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        return dataclasses.replace(TASK.plan(EVEN), schedule="1f1b_4x")

    with pytest.raises(ValueError, match="planner ours: plan must be a placement under 1f1b and"):
        list(judge_planners(TASK, "ours", deeper, DRAWS))


def test_a_judgement_is_what_the_simulator_says_of_the_plan():
    for draw, one in zip(
        DRAWS, judge_planners(TASK, "uniform", PLANNERS["uniform"], DRAWS), strict=True
    ):
        expected = simulate(draw.topology, TASK.workload, TASK.plan(TASK.uniform_placement))
        assert one.metrics["iteration_time_s"] == expected.makespan_s
        assert one.metrics["utilisation"] == expected.utilisation
        assert one.metrics["communication_cost_bytes"] == expected.communication_cost_bytes
        assert one.reward == TASK.reward(one.metrics)
        assert one.metrics["baseline_iteration_time_s"] == draw.baseline.iteration_time_s


def test_each_planner_pays_for_the_changes_between_its_own_placements():
    """From the even split, then to another domain each time, or nothing where it stays."""
    restart_only = Replacement(restart_s=7.0, pays_bytes=False)
    costly = dataclasses.replace(TASK, replacement=restart_only, iterations_per_epoch=5)
    number = iter(range(100))

    def one_domain_after_another(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        return problem.plan(Placement(domain_of_layer=(next(number) % 3,) * 32))

    def first_domain(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        return problem.plan(Placement(domain_of_layer=(0,) * 32))

    moves = list(judge_planners(costly, "moves", one_domain_after_another, DRAWS))
    stays = list(judge_planners(costly, "stays", first_domain, DRAWS))
    even = list(judge_planners(costly, "uniform", PLANNERS["uniform"], DRAWS))

    assert [one.metrics["migration_s"] for one in moves] == [7.0, 7.0, 7.0]
    assert [one.metrics["migration_s"] for one in stays] == [7.0, 0.0, 0.0]
    assert [one.metrics["migration_s"] for one in even] == [0.0, 0.0, 0.0]
    iteration_s = stays[1].metrics["iteration_time_s"]
    assert stays[0].metrics["iteration_time_s"] == pytest.approx(iteration_s + 7.0 / 5)
    assert moves[2].row()["migration_s"] == 7.0


def test_moved_state_is_part_of_what_a_judgement_says():
    costly = dataclasses.replace(TASK, replacement=Replacement(), iterations_per_epoch=5)
    free = next(judge_planners(TASK, "single_domain", PLANNERS["single_domain"], DRAWS))
    (paid, *_) = judge_planners(costly, "single_domain", PLANNERS["single_domain"], DRAWS)

    moved = sum(moved_bytes(TASK.workload, *map(TASK.plan, (EVEN, paid.placement))).values())
    assert paid.row()["moved_bytes"] == pytest.approx(moved)
    assert paid.metrics["communication_cost_bytes"] == pytest.approx(moved / 5)
    assert paid.metrics["migration_s"] > RESTART_S
    assert paid.reward < free.reward


def test_the_verdict_gives_relative_times_and_marks_what_does_not_fit():
    """The same plan under two names differs by nothing."""
    rows = [
        *judge_planners(TASK, "policy", PLANNERS["uniform"], DRAWS),
        *judge_planners(TASK, "exact", PLANNERS["uniform"], DRAWS),
        *judge_planners(TASK, "single_domain", PLANNERS["single_domain"], DRAWS),
    ]
    frame = evaluation_frame(rows)
    frame.loc[frame["planner"] == "single_domain", "fits_memory"] = False

    verdict = verdict_on(frame)

    assert "+0.00 ± 0.00 % against exact;" in verdict
    assert "against single_domain (which does not fit into memory)" in verdict
    utilisation = frame.groupby("planner")["utilisation"].mean()
    assert f"uses {100 * utilisation['policy']:.1f} % of the peak" in verdict
    assert next(iter(frame["placement"])) == "0*11,1*11,2*10"


@pytest.mark.parametrize("planner", ["exact", "random"])
def test_judging_repeats(planner):
    once, again = (
        evaluation_frame(list(judge_planners(TASK, planner, PLANNERS[planner], DRAWS)))
        for _ in range(2)
    )

    assert once.drop(columns="decision_time_s").equals(again.drop(columns="decision_time_s"))
