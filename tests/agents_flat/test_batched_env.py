"""The batch against single episodes, on one thread and on several."""

import copy
import dataclasses
import json

import numpy as np
import pytest
from batched_tasks import (
    EPOCHS,
    NUM_ENVS,
    NUM_LAYERS,
    SEED,
    assert_equal_steps,
    batch,
    play,
    some_actions,
    task,
)
from strategies import unit_domain

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.episode import Episode
from agents.flat.worlds import GivenWorld
from des import Topology
from des.base.random_numbers import derive_seed


def seed_of(position: int, number: int) -> int:
    """Seed of an episode of an environment, derived from that of the batch in two steps."""
    return derive_seed(derive_seed(SEED, position, 0), number, 0)


# One thread.


def test_batch_is_single_episodes_side_by_side():
    """Episode n of the environment at position i has a seed that follows from (seed, i, n)."""
    env, given, actions = batch(), task(), some_actions(2 * EPOCHS + 1)
    first = env.reset()
    steps = play(env, actions)

    assert first.shape == (NUM_ENVS, given.observation_size)
    for position in range(NUM_ENVS):
        episode = Episode(given)
        np.testing.assert_array_equal(first[position], episode.begin(seed_of(position, 0)))
        for number, (action, step) in enumerate(zip(actions, steps, strict=True), start=1):
            placement = given.codec.decode(action[position].tolist())
            alone = episode.step(placement)
            np.testing.assert_array_equal(step.final_observations[position], alone.observation)
            assert step.rewards[position] == np.float32(alone.reward)
            assert step.truncated[position] == alone.truncated == (number % EPOCHS == 0)
            assert {name: values[position] for name, values in step.metrics.items()} == (
                alone.metrics
            )
            then = alone.observation
            if alone.truncated:
                then = episode.begin(seed_of(position, number // EPOCHS))
            np.testing.assert_array_equal(step.observations[position], then)


def test_final_observations_differ_from_observations_exactly_at_truncation():
    env = batch()
    env.reset()
    for step in play(env, some_actions(3 * EPOCHS)):
        differ = (step.final_observations != step.observations).any(axis=1)
        np.testing.assert_array_equal(differ, step.truncated)
        assert not step.terminated.any()


def test_arrays_are_shaped_and_typed_as_declared():
    env = batch()
    observations = env.reset()
    (step,) = play(env, some_actions(1))

    assert observations.dtype == np.float32
    assert step.observations.shape == step.final_observations.shape == (NUM_ENVS, 10)
    assert step.rewards.dtype == np.float32
    assert (env.observation_size, env.action_sizes, env.ordinal_starts) == (
        10,
        (2,) * NUM_LAYERS,
        (None,) * NUM_LAYERS,
    )
    compact = batch(task(actions="order_split"))
    assert (compact.action_sizes, compact.ordinal_starts) == ((2, 5), (None, 0.5))


def test_environments_and_seeds_differ_and_equal_seeds_do_not():
    others = BatchedPlacementEnv(task(), num_envs=NUM_ENVS, seed=SEED + 1).reset()
    ours = batch().reset()

    assert len({row.tobytes() for row in [*ours, *others]}) == 2 * NUM_ENVS
    np.testing.assert_array_equal(batch().reset(), ours)


def test_first_environments_do_not_depend_on_the_size_of_the_batch():
    larger = BatchedPlacementEnv(task(), num_envs=NUM_ENVS + 2, seed=SEED).reset()

    np.testing.assert_array_equal(larger[:NUM_ENVS], batch().reset())


@pytest.mark.parametrize("num_before", [0, 1, EPOCHS, EPOCHS + 2])
def test_state_is_plain_and_continues_exactly(num_before):
    """From the start, in the middle of an episode, just after its end, in the second one."""
    actions = some_actions(num_before + 2 * EPOCHS)
    env = batch()
    env.reset()
    play(env, actions[:num_before])
    saved = json.dumps(env.state())
    onwards = play(env, actions[num_before:])

    other = batch()
    other.load_state(json.loads(saved))
    assert_equal_steps(play(other, actions[num_before:]), onwards)
    assert other.state() == env.state()


def test_state_can_be_loaded_into_a_batch_that_has_played():
    actions = some_actions(2 * EPOCHS)
    env = batch()
    env.reset()
    state = env.state()
    first = play(env, actions)

    env.load_state(state)
    assert_equal_steps(play(env, actions), first)


def test_single_domain_can_be_stepped():
    """Nothing is communicated, and that is still a figure."""
    alone = dataclasses.replace(
        task(), world=GivenWorld(topology=Topology.of([unit_domain("A")], []))
    )
    env = batch(alone)
    env.reset()
    step = env.step(np.zeros((NUM_ENVS, NUM_LAYERS), dtype=np.int64))

    assert step.metrics["communication_cost_bytes"].tolist() == [0.0] * NUM_ENVS


@pytest.mark.parametrize("shape", [(NUM_ENVS - 1, 4), (NUM_ENVS, 3), (NUM_ENVS, 4, 1), (12,)])
def test_actions_of_another_shape_are_refused(shape):
    env = batch()
    env.reset()

    with pytest.raises(
        ValueError, match=r"batched environment: actions must be whole numbers shaped \(3, 4\)"
    ):
        env.step(np.zeros(shape, dtype=np.int64))


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        ("per_layer", (0, 0, 0, 2)),
        ("per_layer", (0, 0, 0, -1)),
        ("per_layer", (0, 0, 0, 0.7)),
        ("order_split", (2, 2)),
        ("order_split", (-1, 2)),
        ("order_split", (0, 5)),
        ("order_split", (0, -1)),
    ],
)
def test_actions_out_of_range_are_refused(actions, action):
    env = batch(task(actions=actions))
    env.reset()

    with pytest.raises(ValueError, match="must"):
        env.step(np.array([action] * NUM_ENVS))


@pytest.mark.parametrize("field", ["num_envs", "num_workers"])
def test_counts_out_of_range_are_refused(field):
    counts = {"num_envs": 2, "num_workers": 1, field: 0}

    with pytest.raises(ValueError, match=f"batched environment: {field} must be a whole number"):
        BatchedPlacementEnv(task(), seed=0, **counts)


def test_steps_keep_their_arrays():
    """What a step has returned does not change with the next."""
    env, again = batch(), batch()
    env.reset()
    again.reset()
    kept, copies = [], []
    for action in some_actions(2 * EPOCHS):
        kept.append(env.step(action))
        copies.append(copy.deepcopy(again.step(action)))

    assert_equal_steps(kept, copies)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain_of_layer": [0, 0, 0]}, r"state must hold 4 layers within 2 domains, got"),
        ({"domain_of_layer": [0, 0, 0, 2]}, r"state must hold 4 layers within 2 domains, got"),
        ({"number": -1}, "state must be of an episode from 0 on"),
        ({"epoch": EPOCHS}, r"of an epoch within \[0, 3\), got 0 and 3"),
    ],
)
def test_state_of_another_task_is_refused(changes, message):
    env = batch()
    env.reset()
    state = env.state()
    state["seats"][1].update(changes)

    with pytest.raises(ValueError, match=f"batched environment: .*{message}"):
        env.load_state(state)


def test_state_of_another_size_is_refused():
    env = batch()
    env.reset()
    larger = BatchedPlacementEnv(task(), num_envs=NUM_ENVS + 1, seed=SEED)

    with pytest.raises(ValueError, match="state must be of 4 environments, got 3"):
        larger.load_state(env.state())


def test_step_before_reset_and_after_close_is_refused():
    env = batch()
    with pytest.raises(RuntimeError, match="environment: reset must be called first"):
        env.step(some_actions(1)[0])

    env.close()
    with pytest.raises(RuntimeError, match="batched environment: is closed"):
        env.reset()
