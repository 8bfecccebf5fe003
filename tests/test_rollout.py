"""Acting, observing and judging: distributions, normalisation, rollouts and advantages."""

import dataclasses

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from torch.distributions import Categorical

from agents.batch_step import BatchStep
from agents.networks import (
    ActionHead,
    ActorCritic,
    Architecture,
    RunningNormaliser,
    ordinal_logits,
)
from agents.rollout import Rollout, collect, gae, judge


def column(*entries: float) -> torch.Tensor:
    return torch.tensor(entries, dtype=torch.float64).unsqueeze(1)


def test_gae_of_four_steps_with_a_termination_and_a_truncation_by_hand():
    """Errors are 0.5, 1, 4, 4; a trace of 0.5 * 0.5 leads from the first step to the second."""
    never, last = False, True
    terminated = torch.tensor([never, last, never, never]).unsqueeze(1)
    ended = torch.tensor([never, last, last, never]).unsqueeze(1)

    advantages = gae(
        column(1, 2, 3, 4),
        column(1, 1, 1, 1),
        column(1, 7, 4, 2),
        terminated,
        ended,
        discount=0.5,
        trace_decay=0.5,
    )

    assert advantages.squeeze(1).tolist() == [0.5 + 0.25 * 1, 1, 3 + 0.5 * 4 - 1, 4 + 0.5 * 2 - 1]


@given(
    seed=st.integers(0, 2**32 - 1),
    num_steps=st.integers(1, 12),
    discount=st.floats(0, 1),
    trace_decay=st.floats(0, 1),
)
def test_perfect_critic_gives_zero_advantage_time_limits_included(
    seed, num_steps, discount, trace_decay
):
    rng = np.random.default_rng(seed)
    shape = (num_steps, 3)
    terminated, truncated = rng.random(shape) < 0.2, rng.random(shape) < 0.2
    rewards, values = rng.normal(size=shape), np.empty(shape)
    next_values = rng.normal(size=shape)  # stays where an episode ended or the rollout does
    for t in reversed(range(num_steps)):
        if t < num_steps - 1:
            goes_on = ~(terminated[t] | truncated[t])
            next_values[t, goes_on] = values[t + 1, goes_on]
        values[t] = rewards[t] + discount * np.where(terminated[t], 0, next_values[t])

    advantages = gae(
        *map(torch.from_numpy, (rewards, values, next_values, terminated, terminated | truncated)),
        discount=discount,
        trace_decay=trace_decay,
    )

    assert advantages.abs().max() < 1e-9


@given(seed=st.integers(0, 2**32 - 1), discount=st.floats(0, 1))
def test_full_trace_without_ends_is_the_discounted_return_minus_the_value(seed, discount):
    rng = np.random.default_rng(seed)
    rewards, values, last_value = rng.normal(size=6), rng.normal(size=6), rng.normal()
    never = torch.zeros(6, 1, dtype=torch.bool)

    advantages = gae(
        column(*rewards),
        column(*values),
        column(*values[1:], last_value),
        never,
        never,
        discount=discount,
        trace_decay=1.0,
    )

    for t in range(6):
        discounts = discount ** np.arange(7 - t)
        expected = discounts @ np.append(rewards[t:], last_value) - values[t]
        assert advantages[t, 0].item() == pytest.approx(expected, abs=1e-9)


SIZES = (3, 2, 81, 2, 81, 1)
ORDINAL = (False, False, True, False, False, False)


def random_policy(seed: int, batch_size: int = 16):
    head = ActionHead(SIZES, ORDINAL)
    generator = torch.Generator().manual_seed(seed)
    return head.distribution(torch.randn(batch_size, head.num_outputs, generator=generator))


def by_component(policy) -> list[Categorical]:
    """The same distribution as one torch object per component."""
    places = {
        int(component): (group, place)
        for group, components in enumerate(policy.components)
        for place, component in enumerate(components)
    }
    return [
        Categorical(logits=policy.log_probs[group][:, place])
        for group, place in (places[component] for component in range(len(SIZES)))
    ]


def test_log_prob_and_entropy_are_the_sums_over_components():
    policy = random_policy(0)
    components = by_component(policy)
    assert [component.probs.shape[-1] for component in components] == list(SIZES)
    actions = policy.sample(torch.Generator().manual_seed(1))

    log_probs = sum(component.log_prob(actions[:, i]) for i, component in enumerate(components))
    torch.testing.assert_close(policy.log_prob(actions), log_probs)
    entropies = sum(component.entropy() for component in components)
    torch.testing.assert_close(policy.entropy(), entropies)
    modes = torch.stack([component.probs.argmax(-1) for component in components], dim=1)
    assert torch.equal(policy.mode(), modes)


def test_samples_come_as_often_as_their_probabilities_say():
    """Frequencies of 20000 samples are within four standard errors, for components of each kind."""
    num_samples = 20_000
    policy = random_policy(3, batch_size=1)
    repeated = dataclasses.replace(
        policy, log_probs=tuple(part.expand(num_samples, -1, -1) for part in policy.log_probs)
    )
    actions = repeated.sample(torch.Generator().manual_seed(0))

    for i, component in enumerate(by_component(policy)):
        expected = component.probs[0]
        found = torch.bincount(actions[:, i], minlength=SIZES[i]) / num_samples
        error = (expected * (1 - expected) / num_samples).sqrt()
        assert bool(((found - expected).abs() <= 4 * error + 1e-6).all())


def test_choices_of_probability_zero_are_never_sampled():
    head = ActionHead((3,), (None,))
    policy = head.distribution(torch.tensor([[-1e30, 0.0, -1e30]]).expand(1000, 3))

    assert policy.sample(torch.Generator().manual_seed(0)).unique().tolist() == [1]


@given(z=st.floats(-8, 8), w=st.floats(-8, 8), num_choices=st.integers(1, 100))
def test_ordinal_policy_peaks_at_the_choice_next_to_its_location(z, w, num_choices):
    logits = ordinal_logits(torch.tensor(z), torch.tensor(w), num_choices)
    probabilities = logits.softmax(-1).tolist()

    location = (num_choices - 1) * (1.2 / (1 + np.exp(-z)) - 0.1)
    nearest = min(range(num_choices), key=lambda choice: abs(choice - location))
    assert sum(probabilities) == pytest.approx(1)
    assert probabilities[nearest] == pytest.approx(max(probabilities), rel=1e-3)
    assert probabilities[:nearest] == sorted(probabilities[:nearest])
    assert probabilities[nearest + 1 :] == sorted(probabilities[nearest + 1 :], reverse=True)


@given(
    batches=st.lists(
        npst.arrays(
            np.float32,
            st.tuples(st.integers(1, 6), st.just(3)),
            elements=st.floats(-100, 100, width=32),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_normaliser_has_the_moments_of_all_batches_together(batches):
    normaliser = RunningNormaliser(3)
    for batch in batches:
        normaliser.update(torch.from_numpy(batch))

    together = np.concatenate(batches).astype(np.float64)
    np.testing.assert_allclose(normaliser.mean.numpy(), together.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(normaliser.variance.numpy(), together.var(axis=0), atol=1e-9)


@given(constant=st.floats(-1e6, 1e6, width=32), num_batches=st.integers(1, 30))
def test_entry_that_never_varied_is_normalised_to_zero(constant, num_batches):
    normaliser = RunningNormaliser(1)
    for _ in range(num_batches):
        normaliser.update(torch.full((7, 1), constant))

    assert normaliser(torch.full((1, 1), constant)).item() == 0
    assert normaliser(torch.full((1, 1), constant + 1)).item() == 0


def test_small_entries_are_normalised_to_mean_zero_and_deviation_one():
    entries = 0.01 + 1e-5 * torch.rand(1000, 1, generator=torch.Generator().manual_seed(0))
    normaliser = RunningNormaliser(1)
    normaliser.update(entries)

    normalised = normaliser(entries)
    assert normalised.mean().item() == pytest.approx(0, abs=1e-5)
    assert normalised.std(correction=0).item() == pytest.approx(1, abs=1e-5)


class Counter:
    """Two environments that count steps from 0 and begin again after 3; action 1 pays 10."""

    num_envs = 2
    observation_size = 1
    action_sizes = (2,)
    ordinal_starts = (None,)
    _count = 0

    def reset(self) -> npt.NDArray[np.float32]:
        self._count = 0
        return np.zeros((2, 1), dtype=np.float32)

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        self._count += 1
        reached = np.full((2, 1), self._count, dtype=np.float32)
        ended = np.full(2, self._count == 3)
        return BatchStep(
            observations=self.reset() if ended.all() else reached,
            final_observations=reached,
            rewards=(10 * actions[:, 0]).astype(np.float32),
            terminated=ended & [True, False],
            truncated=ended & [False, True],
            metrics={"count": reached[:, 0].astype(np.float64)},
        )

    def state(self) -> dict[str, object]:
        return {}

    def load_state(self, state: dict[str, object]) -> None:
        assert not state


def counted(num_steps: int) -> tuple[ActorCritic, Rollout]:
    architecture = Architecture(observation_size=1, action_sizes=(2,), ordinal_starts=(None,))
    generator = torch.Generator().manual_seed(0)
    network = ActorCritic(architecture, generator)
    network.normaliser.update(torch.tensor([[0.0], [3.0]]))
    first = torch.zeros(2, 1)
    return network, collect(Counter(), network, first, num_steps=num_steps, generator=generator)


def test_rollout_keeps_what_was_reached_apart_from_what_comes_next():
    network, rollout = counted(num_steps=5)

    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert rollout.final_observations[:, 1, 0].tolist() == [1, 2, 3, 1, 2]
    assert rollout.terminated.nonzero().tolist() == [[2, 0]]
    assert rollout.truncated.nonzero().tolist() == [[2, 1]]
    assert torch.equal(rollout.rewards, 10.0 * rollout.actions[..., 0])
    assert rollout.metrics == pytest.approx({"count": (1 + 2 + 3 + 1 + 2) / 5})
    again = network.policy(rollout.observations[:-1].flatten(0, 1))
    log_probs = again.log_prob(rollout.actions.flatten(0, 1))
    torch.testing.assert_close(rollout.log_probs.flatten(), log_probs)


def test_judge_values_what_a_step_reached_not_where_the_next_episode_begins():
    network, rollout = counted(num_steps=3)

    experience = judge(rollout, network, discount=0.5, trace_decay=0.0)

    at_2, at_3 = network.value(torch.tensor([[2.0], [3.0]])).tolist()
    rewards = rollout.rewards[2].tolist()  # environment 0 terminates here, 1 is cut off
    expected = [rewards[0] - at_2, rewards[1] + 0.5 * at_3 - at_2]
    assert experience.advantages[-2:].tolist() == pytest.approx(expected, abs=1e-5)
    assert experience.returns[-2:].tolist() == pytest.approx([e + at_2 for e in expected], abs=1e-5)


@pytest.mark.parametrize(
    ("field", "array", "complaint"),
    [
        ("observations", np.zeros(2, np.float32), r"shaped \(N, D\), got \(2,\)"),
        ("final_observations", np.zeros((2, 3), np.float32), r".*shaped \(2, 1\), got .*\(2, 3\)"),
        ("rewards", np.zeros(1, np.float32), r".*shaped \(2,\), got float32 shaped \(1,\)"),
        ("rewards", np.zeros(2), "float32 .*got float64"),
        ("rewards", np.array([1, np.nan], np.float32), "finite"),
        ("terminated", np.zeros(2, np.int64), "bool .*got int64"),
    ],
)
def test_batch_step_names_the_array_that_does_not_fit(field, array, complaint):
    step = Counter().step(np.zeros((2, 1), dtype=np.int64))

    with pytest.raises(ValueError, match=f"batch step: {field} must be {complaint}"):
        dataclasses.replace(step, **{field: array})
