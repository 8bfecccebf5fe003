"""Advantages that follow from rollouts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agents.ppo.rollout import gae


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
