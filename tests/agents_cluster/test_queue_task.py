"""The queueing task: checkers, reward, states, training, the trained ordering."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import agents
from agents.cluster.key_orderings import ShortestRemaining
from agents.cluster.learnt_ordering import LearntOrdering, trained_ordering_network
from agents.cluster.queue_batch import QueueBatch
from agents.cluster.queue_task import QueueSimulator, draw_queue, queue_policy
from agents.cluster.weighted_ordering import SHORTEST_REMAINING, WeightedOrdering
from agents.ppo.checkpoint import CheckpointError, save_checkpoint
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trainer import PPOTrainer
from des.cluster.running import run


def small_queue(seed):
    """The first 12 jobs of a queue."""
    world = draw_queue(seed)
    return replace(world, jobs=tuple(world.jobs)[:12])


def test_the_environment_passes_the_checker_and_is_stepped_in_batches():
    assert "EastWest/Queue-v0" in gymnasium.registry, agents.__name__
    env = gymnasium.make("EastWest/Queue-v0", make_world=small_queue)
    check_env(env.unwrapped, skip_render_check=True)
    check_env_sb3(env.unwrapped, skip_render_check=True)

    envs = gymnasium.make_vec(
        "EastWest/Queue-v0", num_envs=2, vectorization_mode="sync", make_world=small_queue
    )
    observations, _ = envs.reset(seed=1)
    observations, rewards, *_ = envs.step(np.array([SHORTEST_REMAINING] * 2))
    assert observations.shape == (2, 25)
    assert (rewards <= 0).all()


def test_rewards_of_an_episode_add_up_to_the_times_of_its_jobs():
    """By Little's law: the sum over hours of jobs in the cluster is that of their times."""
    simulator, rewards, is_over = QueueSimulator(make_world=small_queue), [], False
    simulator.reset(3)
    while not is_over:
        _, reward, is_over = simulator.step(SHORTEST_REMAINING)
        rewards.append(reward)
    history = run(small_queue(3), queue_policy(WeightedOrdering()))

    total_h = sum(job.jct_s for job in history.jobs) / 3600.0
    assert -100.0 * sum(rewards) == pytest.approx(total_h)
    with pytest.raises(ValueError, match="reset must be called first"):
        simulator.step(SHORTEST_REMAINING)


def test_weights_of_zero_give_the_shortest_remaining_time():
    by_weights = run(small_queue(0), queue_policy(WeightedOrdering()))
    by_rule = run(small_queue(0), queue_policy(ShortestRemaining(quantum_s=300.0)))

    assert by_weights.mean_jct_s == pytest.approx(by_rule.mean_jct_s)
    with pytest.raises(ValueError, match="choices must be three numbers below"):
        WeightedOrdering(choices=(9, 0, 0))


def test_a_state_goes_on_to_the_last_bit_and_training_makes_an_ordering(tmp_path):
    config = PPOConfig(num_steps=8, discount=0.97, num_minibatches=2)
    learners = [PPOTrainer.local(QueueBatch(2, 5, small_queue), config, 5, 48) for _ in range(2)]
    learners[0].update()
    learners[1].load_state(learners[0].state())
    reports = [[learner.update() for _ in range(2)] for learner in learners]
    assert reports[0] == reports[1]

    path = tmp_path / "queue.safetensors"
    save_checkpoint(path, learners[0].state())
    network = trained_ordering_network(path)
    histories = [run(small_queue(1), queue_policy(LearntOrdering(network=network))) for _ in "ab"]
    assert histories[0] == histories[1]
    assert len(histories[0].jobs) == 12


def test_a_file_that_is_no_training_of_queues_is_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match=r"other\.safetensors"):
        trained_ordering_network(path)
