"""The batch as Gymnasium's vector environment meets it; warnings are errors."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, NormalizeReward, RecordEpisodeStatistics
from small_episodes import (
    EPOCHS,
    MOVING,
    NUM_ENVS,
    NUM_LAYERS,
    STEADY,
    play,
    some_actions,
)

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import PlacementEnv, PlacementVectorEnv, make_task

ID = "EastWest/Placement-v0"


_SINGLE = (
    *("domain_of_layer", "total_cycles", "compute_cycles", "communication_cycles"),
    *("communication_bytes", "communication_gb", "cross_domain_bytes"),
    *("network_bandwidth_bytes_per_s", "network_latency_s"),
)
SINGLE = {"final_info", *_SINGLE, *(f"_{name}" for name in _SINGLE)}
"""Figures of single environments that a vector has not, or not in this form."""


def vector(**changes: object) -> PlacementVectorEnv:
    return PlacementVectorEnv(NUM_ENVS, **{**MOVING, **changes})


# What Gymnasium demands.


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"actions": "order_split", "num_domains": 4, "num_layers": 12},
        MOVING,
        {"num_workers": 2},
    ],
    ids=["defaults", "order_split", "own world and job", "two workers"],
)
@pytest.mark.parametrize("mode", [None, "vector_entry_point"])
def test_make_vec_gives_the_batched_environment_and_fills_its_spaces(arguments, mode):
    env = gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, **arguments)
    single = PlacementEnv(**{key: arguments[key] for key in arguments if key != "num_workers"})
    env.action_space.seed(0)

    assert isinstance(env, PlacementVectorEnv)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    observations, infos = env.reset(seed=1)
    assert observations in env.observation_space
    assert infos == {}
    for _ in range(4):
        observations, rewards, terminated, truncated, infos = env.step(env.action_space.sample())
        assert observations in env.observation_space
        assert rewards.shape == terminated.shape == truncated.shape == (2,)
        assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float32, bool, bool)
        assert all(infos[f"_{name}"].dtype == bool for name in infos if name[0] != "_")
    env.close()
    assert env.closed


def test_spec_makes_the_same_environment_again():
    env = gymnasium.make_vec(ID, num_envs=2, num_layers=12)
    again = gymnasium.make_vec(env.spec)

    assert again.spec == env.spec
    assert again.num_envs == 2
    np.testing.assert_array_equal(again.reset(seed=3)[0], env.reset(seed=3)[0])
    assert again.observation_space == env.observation_space


def test_steady_links_make_gymnasiums_own_vector_of_single_environments():
    """Nothing is random there, so both show the same arrays, infos and masks included."""
    own = SyncVectorEnv([lambda: PlacementEnv(**STEADY)] * NUM_ENVS, autoreset_mode="SameStep")
    ours = vector(**STEADY)
    np.testing.assert_array_equal(ours.reset(seed=0)[0], own.reset(seed=0)[0])

    for our_step, own_step in zip(play(ours, 7), play(own, 7), strict=True):
        *our_arrays, our_infos = our_step
        *own_arrays, own_infos = own_step
        own_arrays[1] = own_arrays[1].astype(np.float32)
        np.testing.assert_equal(our_arrays, own_arrays)
        ended = own_step[3]
        assert ("final_info" in our_infos) == ("final_info" in own_infos) == ended.any()
        for infos, reference in (
            (our_infos, own_infos),
            (our_infos.get("final_info", {}), own_infos.get("final_info", {})),
        ):
            for name in reference.keys() - SINGLE:
                if "baseline" not in name or not ended.any():  # a reset tells the baselines too
                    np.testing.assert_equal(list(infos[name]), list(reference[name]))


def test_moving_links_are_those_of_the_batch_with_the_seed_of_the_reset():
    ours = vector()
    batch = BatchedPlacementEnv(make_task(**MOVING), num_envs=NUM_ENVS, seed=11)
    np.testing.assert_array_equal(ours.reset(seed=11)[0], batch.reset())

    for actions in some_actions(2 * EPOCHS + 1):
        observations, rewards, terminated, truncated, infos = ours.step(actions)
        step = batch.step(actions)
        np.testing.assert_array_equal(observations, step.observations)
        np.testing.assert_array_equal(rewards, step.rewards)
        np.testing.assert_array_equal(terminated, step.terminated)
        np.testing.assert_array_equal(truncated, step.truncated)
        shown = infos["final_info"] if truncated.all() else infos
        for name, values in step.metrics.items():
            np.testing.assert_array_equal(shown[name], values)
            assert shown[f"_{name}"].all()
        if truncated.any():
            np.testing.assert_array_equal(np.stack(infos["final_obs"]), step.final_observations)
            np.testing.assert_array_equal(infos["_final_obs"], truncated)


# Seeds.


def test_reset_with_a_seed_resets_and_without_one_goes_on_to_the_next_episodes():
    env = vector()
    first = env.reset(seed=5)[0]
    play(env, EPOCHS + 1)
    second = env.reset()[0]

    assert len({row.tobytes() for row in [*first, *second]}) == 2 * NUM_ENVS
    np.testing.assert_array_equal(env.reset(seed=5)[0], first)
    straight = env.reset()[0]  # the second episode, whatever was done in the first
    env.reset(seed=5)
    env.step(some_actions(1)[0])
    np.testing.assert_array_equal(env.reset()[0], straight)


def test_without_a_seed_no_two_environments_begin_alike():
    rows = [row.tobytes() for _ in range(2) for row in vector().reset()[0]]

    assert len(set(rows)) == 2 * NUM_ENVS


# What users do with it.


def test_arrays_belong_to_the_user():
    """Keeping them, or writing into them, has no effect on later steps, nor these on them."""
    kept, written = vector(), vector()
    kept.reset(seed=2)
    written.reset(seed=2)[0][:] = 7.0
    steps = play(kept, EPOCHS + 2)
    copies = [[array.copy() for array in step[:4]] for step in steps]

    for actions, expected in zip(some_actions(EPOCHS + 2), copies, strict=True):
        *arrays, _ = written.step(actions)
        np.testing.assert_equal(arrays, expected)
        for array in arrays:
            array[:] = 1
    for step, copied in zip(steps, copies, strict=True):
        np.testing.assert_equal(list(step[:4]), copied)


def test_gymnasiums_wrappers_count_its_episodes():
    env = RecordEpisodeStatistics(vector())
    env.reset(seed=0)
    steps = play(env, EPOCHS)

    assert steps[-1][4]["episode"]["l"].tolist() == [EPOCHS] * NUM_ENVS
    expected = np.sum([rewards for _, rewards, *_ in steps], axis=0)
    np.testing.assert_allclose(steps[-1][4]["episode"]["r"], expected, rtol=1e-6)


def test_infos_can_be_listed_for_each_environment():
    env = DictInfoToList(NormalizeReward(vector()))
    env.reset(seed=0)
    *_, before, last = play(env, EPOCHS)

    assert [info["num_stages"] >= 1 for info in before[4]] == [True] * NUM_ENVS
    assert all("num_stages" not in info for info in last[4])
    assert [info["final_info"]["num_stages"] >= 1 for info in last[4]] == [True] * NUM_ENVS


def test_nothing_warns_when_it_is_thrown_away():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = vector(num_workers=2)
        env.reset(seed=0)
        env.close()
        env.close()
        del env


# What is refused.


def test_step_before_reset_and_after_close_are_refused():
    env = vector()
    with pytest.raises(RuntimeError, match="vector environment: reset must be called first"):
        env.step(some_actions(1)[0])
    env.reset(seed=0)
    env.close()
    with pytest.raises(RuntimeError, match="is closed"):
        env.step(some_actions(1)[0])


def test_options_are_refused():
    with pytest.raises(ValueError, match="vector environment: options must be empty, got"):
        vector().reset(options={"reset_mask": np.ones(NUM_ENVS, dtype=bool)})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros((NUM_ENVS, NUM_LAYERS)), "whole numbers"),
        (np.full((NUM_ENVS, NUM_LAYERS), 2), r"within \[0, 2\)"),
        (np.zeros((NUM_ENVS, 1), dtype=int), "shaped"),
    ],
)
def test_invalid_actions_are_refused(actions, message):
    env = vector()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(actions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_workers": 0}, "num_workers must be a whole number"),
        ({"topology": None, "num_domains": 0}, "num_domains must be a whole number"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        vector(**arguments).reset(seed=0)


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="num_domain"):
        PlacementVectorEnv(2, num_domain=3)
