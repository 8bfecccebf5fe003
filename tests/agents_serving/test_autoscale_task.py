"""The autoscaling task: the documents' tests, the action's ends, reward, states, bad input."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import agents
from agents.ppo.batch_step import training_seed
from agents.ppo.checkpoint import save_checkpoint
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trainer import PPOTrainer
from agents.serving.autoscale_env import AutoscaleEnv
from agents.serving.autoscale_task import AutoscaleBatch, TraceRLSimulator
from agents.serving.rl_state import (
    RLActionExecutor,
    RLRewardCalculator,
    RLStateCollector,
    ScalingWeights,
)
from agents.serving.table import scaling_policy
from des.serving.fleet_engine import run
from des.serving.fleet_settings import ScalingLimits
from tests.fleet_cases import drawn_stream, fleet_world, request

KEEP = np.zeros(3)


def small_world(seed):
    """A short day on a small fleet."""
    requests = drawn_stream(seed, num=150, rate_per_s=15.0)
    return fleet_world(
        requests, {"prompt": 1, "token": 1}, limits=ScalingLimits(max_total=20), horizon_s=12.0
    )


def simulator(**changes):
    """Episodes on small days."""
    return TraceRLSimulator(make_world=small_world, **changes)


def test_a_scale_up_is_executed():
    found = simulator()
    found.reset(1)
    found.step([0.4, 0.2, 0.0])  # 2 and 1 of at most 5
    assert found.fleet is not None
    assert found.fleet.manager.get_status_summary()["scaling_up_instances"] == 3


def test_a_full_cycle_decides_to_the_end_of_the_day():
    found = simulator()
    observation, rewards, is_over = found.reset(2), [], False
    while not is_over:
        assert observation.shape == (found.collector.size,)
        observation, reward, is_over = found.step([0.1, -0.1, 0.0])
        rewards.append(reward)

    assert len(rewards) == 11
    assert np.isfinite(rewards).all()
    with pytest.raises(ValueError, match="reset must be called first"):
        found.step(KEEP)


def test_every_hundredth_step_is_logged_with_its_reward_and_the_active_instances():
    requests = [request(number, 2.0 * number, 20, 4) for number in range(110)]
    world = fleet_world(requests, {"prompt": 2, "token": 1}, horizon_s=230.0)
    found = TraceRLSimulator(make_world=lambda _: world)
    found.reset(0)
    rewards = [found.step(KEEP)[1] for _ in range(201)]

    assert found.fleet is not None
    lines = [one for one in found.fleet.history().log if "[Step" in one]
    assert [one.partition(" ")[2] for one in lines] == [
        f"[Step {number}] reward {rewards[number - 1]:.4f}, active instances 3"
        for number in (100, 200)
    ]


def test_high_load_is_punished_more_and_low_load_costs_less_with_fewer_instances():
    rewards = {}
    for name, requests in {
        "high": drawn_stream(1, num=400, rate_per_s=40.0),
        "low": [request(number, 2.0 * number, 20, 4) for number in range(10)],
    }.items():
        world = fleet_world(requests, {"prompt": 2, "token": 2}, horizon_s=12.0)
        for action in ((0.0, 0.0, 0.0), (-0.2, -0.2, 0.0)):
            found = TraceRLSimulator(make_world=lambda _, world=world: world)
            found.reset(0)
            found.step(action)
            rewards[name, action[0]] = sum(found.step(KEEP)[1] for _ in range(6))

    assert rewards["high", 0.0] < rewards["low", 0.0]
    assert rewards["low", -0.2] > rewards["low", 0.0]


@pytest.mark.parametrize("action", [[2.0, 0, 0], [0, 0], [np.nan, 0, 0], [0, 0, -1.01]])
def test_actions_outside_the_space_are_refused(action):
    found = simulator()
    found.reset(0)
    with pytest.raises(ValueError, match=r"3 numbers within \[-1, 1\]"):
        found.step(action)


def test_actions_keep_least_and_most_and_choices_are_all_changes():
    found = simulator()
    found.reset(0)
    assert found.view is not None
    executor = RLActionExecutor(max_total_instances=4)
    assert dict(executor.decide(found.view, [-1, -1, 0]).counts) == {"prompt": 1, "token": 1}
    assert sum(executor.decide(found.view, [1, 1, 0]).counts.values()) == 4
    assert executor.decide(found.view, [0, 0, -1]).migrate == -3
    changes = {
        round(float(executor.action_of(np.array([number, 5, 3]))[0]) * 5) for number in range(11)
    }
    assert changes == set(range(-5, 6))
    adaptive = RLActionExecutor(is_adaptive=True)
    assert dict(adaptive.decide(found.view, [1, 1, 0]).counts) == {"prompt": 2, "token": 2}


def test_residual_actions_change_what_the_guide_wants():
    found = simulator(executor=RLActionExecutor(is_residual=True))
    found.reset(0)
    view, wanted = found.view, {"prompt": 4, "token": 2}
    assert view is not None
    assert dict(found.executor.decide(view, KEEP, wanted).counts) == wanted
    assert dict(found.executor.decide(view, [0.2, -0.2, 0], wanted).counts) == {
        "prompt": 5,
        "token": 1,
    }
    with pytest.raises(ValueError, match="counts of the guide"):
        found.executor.decide(view, KEEP)


@pytest.mark.parametrize("metric", ["ttft_s", "ttft_p95_s", "gap_s", "attainment"])
def test_not_a_number_is_refused_as_a_metric(metric):
    found = simulator()
    found.reset(0)
    assert found.view is not None
    with pytest.raises(ValueError, match="metrics must be finite"):
        RLStateCollector().collect(replace(found.view, **{metric: float("nan")}), found.wanted)


def test_not_a_number_is_refused_as_a_metric_of_a_pool():
    found = simulator()
    found.reset(0)
    assert found.view is not None
    pool = replace(found.view.pools["token"], kv_fraction=float("nan"))
    with pytest.raises(ValueError, match="metrics must be finite, got nan as token kv_fraction"):
        replace(found.view, pools={**found.view.pools, "token": pool})


def test_limits_of_actions_that_contradict_are_refused():
    found = simulator()
    found.reset(0)
    assert found.view is not None
    with pytest.raises(ValueError, match="max_total_instances must be at least 3"):
        RLActionExecutor(min_instances_per_pool=3, max_total_instances=2)
    with pytest.raises(ValueError, match="at least 6, min_instances_per_pool in 2 pools, got 5"):
        RLActionExecutor(min_instances_per_pool=3, max_total_instances=5).decide(found.view, KEEP)
    with pytest.raises(ValueError, match="cost_scale"):
        RLRewardCalculator(cost_scale=0.0)


def test_weights_are_seen_and_paid():
    found = simulator()
    found.reset(0)
    view = found.view
    assert view is not None
    decision = found.executor.decide(view, KEEP)
    free = ScalingWeights(slo=0.0, cost=0.0, stability=0.0)
    assert RLRewardCalculator(weights=free).reward(view, decision) == 0.0
    costly = ScalingWeights(slo=0.0, cost=1.0, stability=0.0)
    assert RLRewardCalculator(weights=costly).reward(view, decision) == pytest.approx(-0.2)
    assert RLStateCollector(weights=costly).collect(view, found.wanted)[-3:].tolist() == [
        0.0,
        1.0,
        0.0,
    ]


def test_a_state_of_a_batch_continues_exactly():
    batch, other = (AutoscaleBatch(2, 3, make_world=small_world) for _ in range(2))
    batch.reset()
    actions = np.array([[6, 5, 3], [5, 7, 2]])
    batch.step(actions)
    other.load_state(batch.state())

    first, second = batch.step(actions), other.step(actions)
    assert np.array_equal(first.observations, second.observations)
    assert np.array_equal(first.rewards, second.rewards)
    assert training_seed(0, 0, 0) >= 2**20


def test_the_environment_is_registered_and_repeats_itself():
    assert agents.__doc__
    env = gymnasium.make("EastWest/Autoscale-v0", simulator=simulator())
    first, _ = env.reset(seed=4)
    after = env.step(env.action_space.sample() * 0)
    again, _ = env.reset(seed=4)

    assert np.array_equal(first, again)
    assert np.array_equal(env.step(env.action_space.sample() * 0)[0], after[0])
    with pytest.raises(ValueError, match="render_mode"):
        AutoscaleEnv(render_mode="human")


def test_training_updates_and_its_policy_decides(tmp_path):
    """One update on tiny days; the checkpoint is a policy for any fleet of two pools."""
    batch = AutoscaleBatch(2, 3, make_world=small_world)
    settings = PPOConfig(num_steps=8, num_minibatches=2, hidden_sizes=(8,))
    learner = PPOTrainer.local(batch, settings, 0, 16)
    report = learner.update()
    assert np.isfinite(report.mean_reward)
    save_checkpoint(tmp_path / "policy.safetensors", learner.state())

    history = run(small_world(5), scaling_policy("rl", tmp_path / "policy.safetensors"))
    assert all(decision.why.startswith("action") for _, decision in history.decisions)


def test_an_episode_that_is_run_is_the_one_that_is_stepped():
    seen, stepped = [], simulator()
    ran = simulator().run(lambda observation: seen.append(observation) or KEEP, 3)
    stepped.reset(3)
    while not stepped.step(KEEP)[2]:
        pass

    assert ran.requests == stepped.fleet.history().requests
    assert len(seen) == len(ran.decisions) > 1
