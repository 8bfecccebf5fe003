"""The batch as Stable-Baselines3 meets it; warnings are errors."""

import numpy as np
import pytest
from gymnasium import Wrapper
from small_episodes import (
    EPOCHS,
    MOVING,
    NUM_ENVS,
    STEADY,
    play,
    some_actions,
)
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecCheckNan,
    VecMonitor,
    VecNormalize,
)
from strategies import world

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import PlacementEnv, make_task
from agents.flat.sb3_vec_env import PlacementSB3VecEnv
from des import UniformLaw


def vector(seed: int = 4, num_envs: int = NUM_ENVS, **changes: object) -> PlacementSB3VecEnv:
    return PlacementSB3VecEnv(make_task(**{**MOVING, **changes}), num_envs=num_envs, seed=seed)


def test_steps_are_those_of_the_batch():
    ours, batch = vector(), BatchedPlacementEnv(make_task(**MOVING), num_envs=NUM_ENVS, seed=4)
    np.testing.assert_array_equal(ours.reset(), batch.reset())

    returns = np.zeros(NUM_ENVS)
    for number, actions in enumerate(some_actions(2 * EPOCHS + 1), start=1):
        observations, rewards, dones, infos = ours.step(actions)
        step = batch.step(actions)
        returns += step.rewards
        np.testing.assert_array_equal(observations, step.observations)
        np.testing.assert_array_equal(rewards, step.rewards)
        np.testing.assert_array_equal(dones, step.truncated)
        np.testing.assert_equal(dict(ours.metrics), dict(step.metrics))
        assert (observations.dtype, rewards.dtype, dones.dtype) == (np.float32, np.float32, bool)
        if number % EPOCHS:
            assert infos == [{}] * NUM_ENVS
            continue
        for row, info in enumerate(infos):
            last = info.pop("terminal_observation")
            np.testing.assert_array_equal(last, step.final_observations[row])
            assert info.pop("TimeLimit.truncated") is True
            assert info.pop("episode") == {"r": returns[row], "l": EPOCHS}
            assert info == {name: values[row] for name, values in step.metrics.items()}
        returns[:] = 0.0


def test_steady_links_make_its_own_vector_of_single_environments():
    """Nothing is random there, so both show the same."""
    own = DummyVecEnv([lambda: Monitor(PlacementEnv(**STEADY)) for _ in range(NUM_ENVS)])
    ours = vector(**STEADY)
    assert (ours.observation_space, ours.action_space) == (own.observation_space, own.action_space)
    np.testing.assert_array_equal(ours.reset(), own.reset())

    for our_step, own_step in zip(play(ours, 7), play(own, 7), strict=True):
        np.testing.assert_equal(our_step[:3], own_step[:3])
        for our_info, own_info in zip(our_step[3], own_step[3], strict=True):
            assert ("terminal_observation" in own_info) == bool(our_info)
            for name in our_info.keys() - {"episode"}:
                np.testing.assert_array_equal(our_info[name], own_info[name])
            if our_info:
                assert our_info["episode"]["r"] == pytest.approx(own_info["episode"]["r"], abs=1e-5)
                assert our_info["episode"]["l"] == own_info["episode"]["l"]


def test_seed_takes_effect_with_the_next_reset_and_only_once():
    env = vector(seed=4)
    first = env.reset()
    second = env.reset()
    env.seed(9)
    of_nine = env.reset()
    env.seed(4)

    assert len({row.tobytes() for row in [*first, *second, *of_nine]}) == 3 * NUM_ENVS
    np.testing.assert_array_equal(env.reset(), first)
    np.testing.assert_array_equal(env.reset(), second)
    np.testing.assert_array_equal(vector(seed=9).reset(), of_nine)


def test_reset_in_the_middle_of_an_episode_forgets_its_return():
    env = vector()
    env.reset()
    play(env, EPOCHS - 1)
    env.reset()
    steps = play(env, EPOCHS)

    expected = np.sum([rewards for _, rewards, _, _ in steps], axis=0, dtype=float)
    assert [info["episode"] for info in steps[-1][3]] == [
        {"r": total, "l": EPOCHS} for total in expected.tolist()
    ]


def test_what_users_write_into_arrays_and_infos_has_no_effect():
    """The algorithms add to rewards, its wrappers replace entries of infos."""
    kept, written = vector(), vector()
    kept.reset()
    written.reset()[:] = 7.0

    for expected, actions in zip(play(kept, 2 * EPOCHS), some_actions(2 * EPOCHS), strict=True):
        step = written.step(actions)
        np.testing.assert_equal(step, expected)
        for array in step[:3]:
            array[:] = 1
        for info in step[3]:
            info["mine"] = 1
            if "terminal_observation" in info:
                info["terminal_observation"][:] = 7.0


def test_its_wrappers_stand_on_it():
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        monitored = VecMonitor(vector(), info_keywords=("iteration_time_s",))
    env = VecCheckNan(VecNormalize(monitored, gamma=0.0))
    env.reset()
    *_, infos = play(env, EPOCHS)[-1]

    assert all(info["episode"]["l"] == EPOCHS for info in infos)
    assert all(info["episode"]["iteration_time_s"] > 0 for info in infos)
    assert all(info["terminal_observation"].shape == (10,) for info in infos)


def test_ppo_of_stable_baselines3_learns_on_it():
    """Crossing the slow links is dear; the policy learns to leave all layers in one domain."""
    slow = world(
        "AB",
        {"AB": (0.5, 1.0), "BA": (0.5, 1.0)},
        dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2),
    )
    env = vector(num_envs=32, topology=slow, epochs_per_episode=8)
    model = PPO("MlpPolicy", env, 3e-3, n_steps=16, batch_size=128, gamma=0.0, device="cpu", seed=0)
    model.set_logger(Logger(folder=None, output_formats=[]))  # else it leaves a folder behind
    means = []

    def note(local: dict, _: dict) -> bool:
        means.append(float(local["rewards"].mean()))
        return True

    model.learn(total_timesteps=12 * 16 * 32, callback=note)

    first, last = np.mean(means[:16]), np.mean(means[-16:])
    assert first < -0.4
    assert last > 0.0  # one domain earns 0.297
    assert model.ep_info_buffer[-1]["l"] == 8
    assert model.ep_info_buffer[-1]["r"] == pytest.approx(8 * last, rel=0.5)
    greedy, _ = evaluate_policy(model, env, n_eval_episodes=32)
    assert greedy / 8 > last - 0.1


def test_attributes_are_those_of_the_batch():
    env = vector()

    assert env.get_attr("num_envs", [0, 2]) == [NUM_ENVS, NUM_ENVS]
    assert env.get_attr("render_mode") == [None] * NUM_ENVS
    assert env.env_is_wrapped(Monitor) == [True] * NUM_ENVS  # it counts episodes itself
    assert env.env_is_wrapped(Wrapper, 1) == [False]
    assert not env.has_attr("action_masks")


def test_what_only_single_environments_have_is_refused():
    env = vector()
    with pytest.raises(AttributeError, match="task cannot be set on one of a batch"):
        env.set_attr("task", None)
    with pytest.raises(AttributeError, match="reset cannot be called on one of a batch"):
        env.env_method("reset")
    env.set_options({"links": "slow"})
    with pytest.raises(ValueError, match="vector environment: options must be empty"):
        env.reset()


def test_step_after_close_is_refused():
    env = vector()
    env.reset()
    env.close()
    with pytest.raises(RuntimeError, match="is closed"):
        env.step(some_actions(1)[0])
