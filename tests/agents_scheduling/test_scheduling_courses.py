"""Episodes take what `run_course` takes for the same plans; checkers are content with them."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_tasks import ID, NUM_EPOCHS, PAIR, Replaying, few, rare, some_actions
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from agents.decision.families import FAMILIES
from agents.decision.run_epochs import run_course
from agents.decision.situation import TIME_ONLY
from agents.judge.step_times import mean_step
from agents.scheduling.batch import SchedulingBatch
from agents.scheduling.env import seeded_batch
from agents.scheduling.task import Described
from des import check_memory
from scenarios.suites import suite

NUM_ENVS = 24


def played(task, num_envs, seed):
    """Steps of random actions, and the plans in force in them; two take simple ones."""
    batch, rng = seeded_batch(task, num_envs, 0), np.random.default_rng(seed)
    batch.reset(range(num_envs))
    steps, plans = [], []
    for epoch in range(NUM_EPOCHS):
        actions = some_actions(task, num_envs, rng)
        for row, groups in ((0, ((epoch % 4,),)), (1, ((epoch % 4,), ((epoch + 1) % 4,)))):
            simple = Described(groups, (1.0,) * 4, schedule=0, mode=0)
            actions[row] = task.action.encoded(simple)
        steps.append(batch.step(actions, resets=False))
        plans.append([one.plan for one in batch.plans])
    return steps, plans


@pytest.mark.parametrize("make", [few, rare])
def test_durations_changes_and_bytes_are_those_of_run_course_to_the_last_bit(make):
    task = make()
    steps, plans = played(task, NUM_ENVS, seed=3)
    families = {int(one) for step in steps for one in step.metrics["family"]}

    for draw in (0, *range(1, NUM_ENVS, 4)):
        own = [in_force[draw] for in_force in plans]
        course = run_course(task.setting.world, draw, Replaying(own), mean_step=mean_step)
        for row, step in zip(course.rows, steps, strict=True):
            for name in ("iteration_s", "num_iterations", "change_s", "moved_bytes"):
                assert step.metrics[name][draw] == getattr(row, name)
    assert {FAMILIES[one] for one in families} == set(task.setting.space.families)


@pytest.mark.parametrize("make", [few, rare])
def test_plans_in_force_fit(make):
    task = make()
    _, plans = played(task, NUM_ENVS, seed=4)

    for plan in {plan for of_epoch in plans for plan in of_epoch}:
        check_memory(task.setting.world.topology, task.setting.workload, plan)


def test_an_environment_does_not_depend_on_the_others():
    task, rng = few(), np.random.default_rng(5)
    whole, alone = seeded_batch(task, 3, 7), seeded_batch(task, 1, 9)
    np.testing.assert_array_equal(whole.reset()[2], alone.reset()[0])

    for _ in range(2 * NUM_EPOCHS + 1):
        actions = some_actions(task, 3, rng)
        step, own = whole.step(actions), alone.step(actions[2:])
        np.testing.assert_array_equal(step.observations[2], own.observations[0])
        np.testing.assert_array_equal(step.final_observations[2], own.final_observations[0])
        assert step.rewards[2] == own.rewards[0]
        assert {name: one[2] for name, one in step.metrics.items()} == {
            name: one[0] for name, one in own.metrics.items()
        }


def test_the_same_seed_gives_the_same_episodes():
    one, other = (played(few(), 2, seed=6)[0] for _ in range(2))

    for step, again in zip(one, other, strict=True):
        np.testing.assert_equal(dict(step.metrics), dict(again.metrics))
        np.testing.assert_array_equal(step.observations, again.observations)


@pytest.mark.parametrize(
    "arguments",
    [
        lambda: {"task": few()},
        lambda: {"task": rare()},
        lambda: {"task": few().variant("known", TIME_ONLY)},
        lambda: PAIR,
        lambda: {"world": suite("eval_held").world(1), "num_known": 0},
    ],
    ids=["short episodes", "rare exchanges", "known plans alone", "by hand", "a world of a suite"],
)
def test_both_checkers_are_content(arguments):
    env = gymnasium.make(ID, **arguments()).unwrapped

    check_env(env, skip_render_check=True)
    check_env_sb3(env, skip_render_check=True)


def test_steps_beyond_the_end_and_before_the_start_are_refused():
    task = few()
    batch = SchedulingBatch(task, [np.random.default_rng(0)])
    keep = np.zeros((1, len(task.action.sizes)), dtype=np.int64)
    with pytest.raises(RuntimeError, match="reset must be called first"):
        batch.step(keep)
    batch.reset()
    for _ in range(NUM_EPOCHS):
        batch.step(keep, resets=False)
    with pytest.raises(RuntimeError, match="reset must be called first"):
        batch.step(keep)
