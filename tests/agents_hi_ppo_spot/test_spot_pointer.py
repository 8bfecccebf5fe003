"""The pointer over sets of sites: its network, observations, task and environment."""

import time
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from spot_cases import drawn_world, three_sites

import agents.environments  # noqa: F401 - registers the names
from agents.hi_ppo.spot.batch import SpotTasks
from agents.hi_ppo.spot.policy import LearntSpotPolicy, RandomOffers, spot_network
from agents.hi_ppo.spot.task import (
    LEAST_PRIOR,
    MOST_OFFERS,
    NUM_SHARED,
    OBSERVATION_SIZE,
    OFFER_SIZE,
    SpotObserver,
    SpotTask,
    draw_spot_world,
)
from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from agents.ppo.networks import ActorCritic, NetworkArchitecture, PointerNetwork, network_of
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trained_policy import network_payload
from agents.ppo.trainer import PPOTrainer
from agents.replanning.spot.clairvoyant import most_tokens
from des.spot.batch import SpotBatch, run_spot_batch
from des.spot.engine import run_spot
from des.spot.world import NOTHING

ARCHITECTURE = NetworkArchitecture(
    observation_size=2 + 3 * 4, action_sizes=(3,), ordinal_starts=(None,), candidate_size=4
)


def network(architecture=ARCHITECTURE, seed=0):
    """A new pointer."""
    return network_of(architecture, torch.Generator().manual_seed(seed))


def learner(seed=0, steps=64, num_envs=2):
    """A training of a few decisions."""
    config = PPOConfig(num_steps=16, num_minibatches=2, discount=0.98)
    tasks = SpotTasks(num_envs, seed)
    return PPOTrainer.local(tasks, config, seed, steps, candidate_size=OFFER_SIZE)


def test_a_pointer_adds_to_the_ratings_and_forbids_what_is_not_allowed():
    """Last weights are tiny at first: log-probabilities are those of the ratings."""
    observations = torch.zeros(1, 14)
    choices = observations[:, 2:].view(1, 3, 4)
    choices[:, :, 0] = torch.tensor([1.0, 1.0, 0.0])
    choices[:, :, 1] = torch.tensor([0.0, -1.0, 5.0])

    with torch.no_grad():
        policy = network().policy(observations)
    chances = [float(policy.log_prob(torch.tensor([[each]])).exp()) for each in range(3)]

    assert chances[0] == pytest.approx(1 / (1 + np.exp(-1)), abs=0.01)
    assert chances[2] == 0.0
    assert policy.mode().tolist() == [[0]]


def test_a_pointer_does_not_mind_the_order_of_choices():
    """Invariance: choices that change places take their probabilities with them."""
    observations = torch.randn(5, 14, generator=torch.Generator().manual_seed(1))
    choices = observations[:, 2:].view(5, 3, 4)
    choices[:, :, 0] = 1.0
    turned = observations.clone()
    turned[:, 2:] = choices.flip(1).reshape(5, -1)
    pointer = network(seed=3)

    straight, flipped = pointer.policy(observations), pointer.policy(turned)

    assert torch.allclose(straight.nominal.logits.flip(1), flipped.nominal.logits)
    assert torch.allclose(pointer.value(observations), pointer.value(turned))


def test_weights_do_not_depend_on_the_number_of_choices():
    more = replace(ARCHITECTURE, observation_size=2 + 7 * 4, action_sizes=(7,))

    assert network().parameter.shape == network(more).parameter.shape
    assert isinstance(network(), PointerNetwork)
    plain = replace(ARCHITECTURE, candidate_size=0)
    assert type(network(plain)) is ActorCritic
    assert "candidate_size" not in plain.plain()


@pytest.mark.parametrize("changes", [{"candidate_size": 1}, {"candidate_size": 5}])
def test_candidates_that_do_not_fit_are_refused(changes):
    with pytest.raises(ValueError, match="candidate_size must be 0, or at least 2"):
        replace(ARCHITECTURE, **changes)


def test_observations_show_what_is_allowed_and_held():
    world, law = draw_spot_world(3)
    observer, batch = SpotObserver.of([world], [law]), SpotBatch([world], [0], [0])
    view = batch.view()
    up = np.flatnonzero(observer.allowed(view)[0])
    batch.advance(up[:1])

    offers = observer.observe(batch.view())[0, NUM_SHARED:].reshape(MOST_OFFERS, OFFER_SIZE)

    assert (
        np.flatnonzero(offers[:, 0]).tolist()
        == np.flatnonzero(observer.allowed(batch.view())[0]).tolist()
    )
    assert np.flatnonzero(offers[:, 7]).tolist() == up[:1].tolist()
    assert np.abs(offers).max() <= -LEAST_PRIOR
    assert (offers[:, 1] <= 0).all()


def test_fewer_offers_leave_the_rest_forbidden():
    world = drawn_world(0, 50)
    observer = SpotObserver.of([world], [three_sites()])

    observation = observer.observe(SpotBatch([world], [0], [0]).view())

    assert observation.shape == (1, OBSERVATION_SIZE)
    offers = observation[0, NUM_SHARED:].reshape(MOST_OFFERS, OFFER_SIZE)
    assert not offers[7:].any()


def test_rewards_add_up_to_tokens_less_those_of_the_clairvoyant():
    """Conservation: of an episode, the tokens are those of the batch."""
    world = drawn_world(2, 60)
    task = SpotTask(make_world=lambda seed: (world, three_sites()))
    task.reset(2)
    observer, batch = task._observer, task._batch
    scale, total, is_over = observer.tables.tokens_per_s.max() * 3600.0, 0.0, False
    while not is_over:
        _, reward, is_over = task.step([6])
        total += reward

    assert total * scale == pytest.approx(float(batch.tokens()[0]) - most_tokens(world))


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_decision_is_better_than_those_of_the_clairvoyant(seed):
    """Whatever is asked for, moves under way included: where no server fails, no reward is above 0.

    The last tick has nothing to come, and losses at short notice count as they come.
    """
    world = drawn_world(seed % 8, 60)
    world = replace(world, offers=replace(world.offers, failures_per_s=np.zeros(7)))
    task = SpotTask(make_world=lambda _: (world, three_sites()))
    task.reset(0)
    rng, is_over = np.random.default_rng(seed), False
    while not is_over:
        _, reward, is_over = task.step([int(rng.integers(7))])
        assert reward <= 1e-9


def test_a_task_refuses_what_is_no_offer():
    task = SpotTask()
    with pytest.raises(ValueError, match="reset must be called first"):
        task.step([0])
    task.reset(0)
    with pytest.raises(ValueError, match="offer must be from 0 to 30, got 31"):
        task.step([31])


def test_the_environment_is_one_of_gymnasium():
    env = gymnasium.make("EastWest/Spot-v0")

    check_env(env.unwrapped, skip_render_check=True)
    first, _ = env.reset(seed=4)
    again, _ = env.reset(seed=4)
    assert np.array_equal(first, again)


def test_a_training_gives_the_same_weights_twice(tmp_path):
    """And the policy of its file is that of its network."""
    one, other = learner(), learner()
    while not one.finished:
        one.update()
        other.update()
    assert torch.equal(one.network.parameter, other.network.parameter)
    path = tmp_path / "spot.safetensors"
    save_checkpoint(path, one.state())
    learner().load_state(load_checkpoint(path))
    assert network_payload(spot_network(path))["candidate_size"] == OFFER_SIZE

    world, law = draw_spot_world(1)
    world = replace(world, course=world.course.part(0.0, 0.1))
    policies = [
        LearntSpotPolicy.of(each, [world], [law]) for each in (one.network, spot_network(path))
    ]
    first, second = (run_spot_batch([world], policy, [0]) for policy in policies)
    assert first == second == [run_spot(world, policies[0], 0)]


def test_random_offers_are_among_those_allowed():
    world, law = draw_spot_world(5)
    view = SpotBatch([world], [0], [0]).view()
    observer = SpotObserver.of([world], [law])

    (offer,) = RandomOffers(observer=observer).choose(view)

    assert observer.allowed(view)[0, offer]
    none = replace(view, up=np.zeros_like(view.up), seen_s=np.zeros_like(view.seen_s))
    assert RandomOffers(observer=observer).choose(none).tolist() == [NOTHING]


def test_a_random_step_takes_at_most_three_milliseconds():
    """Processor time of this process, the median of 60 steps."""
    env = gymnasium.make("EastWest/Spot-v0")
    env.reset(seed=0)
    env.action_space.seed(0)
    took_s = []
    for _ in range(60):
        begin_s = time.process_time()
        env.step(env.action_space.sample())
        took_s.append(time.process_time() - begin_s)

    assert np.median(took_s) <= 3e-3
