"""Judging planners on held-out draws."""

import numpy as np
import pytest

from agents.batched_env import BatchedPlacementEnv
from agents.env import make_task
from agents.planners import PLANNERS, PlanningProblem
from des import Placement, build_workload, read_topology, simulate
from scenarios.evaluation import evaluation_frame, held_out_draws, judge
from scenarios.outcome import verdict_on

TASK = make_task(
    topology=read_topology("east_central_west"),
    workload=build_workload("llama2_7b", num_microbatches=4),
    actions="order_split",
)
DRAWS = held_out_draws(TASK, num_draws=3, seed=5)


def test_draws_follow_from_their_seed():
    again = held_out_draws(TASK, num_draws=3, seed=5)
    other = held_out_draws(TASK, num_draws=3, seed=6)

    assert [draw.topology for draw in again] == [draw.topology for draw in DRAWS]
    assert not {draw.topology for draw in other} & {draw.topology for draw in DRAWS}


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
    found: list[Placement | None] = []

    def one_domain_after_another(problem: PlanningProblem, rng: np.random.Generator) -> Placement:
        found.append(problem.last_placement)
        return Placement(domain_of_layer=(len(found) % 3,) * 32)

    placements = [one.placement for one in judge(TASK, "ours", one_domain_after_another, DRAWS)]

    warm_up, first, *others = found
    assert warm_up is None
    assert first == TASK.uniform_placement
    assert others == placements[:-1]


def test_a_judgement_is_what_the_simulator_says_of_the_plan():
    for draw, one in zip(DRAWS, judge(TASK, "uniform", PLANNERS["uniform"], DRAWS), strict=True):
        expected = simulate(draw.topology, TASK.workload, TASK.plan(TASK.uniform_placement))
        assert one.result == expected
        assert one.reward == TASK.reward(TASK.metrics(expected, draw.baseline))


def test_the_verdict_gives_relative_times_and_marks_what_does_not_fit():
    """The same plan under two names differs by nothing."""
    rows = [
        *judge(TASK, "policy", PLANNERS["uniform"], DRAWS),
        *judge(TASK, "exact", PLANNERS["uniform"], DRAWS),
        *judge(TASK, "single_domain", PLANNERS["single_domain"], DRAWS),
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
        evaluation_frame(list(judge(TASK, planner, PLANNERS[planner], DRAWS))) for _ in range(2)
    )

    assert once.drop(columns="decision_time_s").equals(again.drop(columns="decision_time_s"))
