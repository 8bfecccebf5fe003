"""Recent choices of a policy: decisions picked evenly, and the placements they mean."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agents.flat.env import make_task
from agents.flat.policy_planner import placements_of
from agents.ppo.rollout import evenly_spread, some_actions


@given(num_items=st.integers(1, 10**7), most=st.integers(1, 300))
def test_one_item_of_each_of_as_many_equal_runs(num_items, most):
    picked = evenly_spread(num_items, most)

    assert len(picked) == min(num_items, most)
    for number, position in enumerate(picked.tolist()):
        begin, end = (n * num_items // len(picked) for n in (number, number + 1))
        assert begin <= position < end


@pytest.mark.parametrize("num_envs", [64, 250, 256])
def test_picks_do_not_fall_in_with_the_number_of_environments(num_envs):
    """Equal steps over 128 steps of 64 or 256 environments would meet the first one only."""
    environments = evenly_spread(128 * num_envs, 64) % num_envs

    counts, _ = np.histogram(environments, bins=8, range=(0, num_envs))
    assert counts.min() >= 4
    assert len(set(environments.tolist())) >= 32


def numbered(*shapes: tuple[int, int]) -> list[torch.Tensor]:
    """Actions (T, N, 2) that name their rollout and their position in it."""
    return [
        torch.stack([torch.full((t * n,), number), torch.arange(t * n)], dim=1).view(t, n, 2)
        for number, (t, n) in enumerate(shapes)
    ]


@given(
    shapes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=4),
    most=st.integers(1, 130),
)
def test_actions_of_rollouts_of_any_lengths_are_those_of_the_joined_rows(shapes, most):
    parts = numbered(*shapes)
    joined = np.concatenate([part.flatten(0, 1).numpy() for part in parts])

    found = some_actions(parts, most)

    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, joined[evenly_spread(len(joined), most)])


def test_actions_are_copies():
    parts = numbered((3, 2))
    found = some_actions(parts, 100)
    parts[0][:] = -1

    assert found.tolist() == [[0, position] for position in range(6)]


def test_placements_by_frequency_then_by_domains_by_hand():
    """Actions (order; split): both splits in any order, and empty domains, mean the same."""
    task = make_task(num_layers=4, actions="order_split")  # three domains
    actions = np.array(
        [
            [0, 0, 1, 2],
            [2, 1, 4, 4],
            [0, 0, 2, 1],
            [2, 0, 4, 4],
            [1, 0, 4, 4],
            [0, 0, 4, 4],
            [0, 1, 4, 4],
        ]
    )

    found = [
        (placement.domain_of_layer, count) for placement, count in placements_of(task, actions)
    ]

    assert found == [
        ((0, 0, 0, 0), 2),
        ((0, 1, 2, 2), 2),
        ((2, 2, 2, 2), 2),
        ((1, 1, 1, 1), 1),
    ]


@given(seed=st.integers(0, 2**32 - 1), num_actions=st.integers(0, 40))
def test_counts_add_up_and_do_not_depend_on_the_order(seed, num_actions):
    task = make_task(num_layers=3)
    rng = np.random.default_rng(seed)
    actions = rng.integers(task.codec.sizes, size=(num_actions, 3))

    found = placements_of(task, actions)

    assert sum(count for _, count in found) == num_actions
    assert placements_of(task, rng.permutation(actions)) == found
    for placement, count in found:
        assert count == (actions == placement.domain_of_layer).all(axis=1).sum()
    keys = [(-count, placement.domain_of_layer) for placement, count in found]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (
            np.zeros((2, 4), np.int64),
            r"actions must be whole numbers shaped \(M, 3\), got int64 shaped",
        ),
        (
            np.zeros(3, np.int64),
            r"actions must be whole numbers shaped \(M, 3\), got int64 shaped \(3,\)",
        ),
        (np.zeros((2, 3)), r"actions must be whole numbers shaped \(M, 3\), got float64"),
        (np.array([[0, 0, 0], [0, 3, 0]]), r"actions\[1, 1\] must be within \[0, 3\), got 3"),
        (np.array([[0, 0, -1]]), r"actions\[0, 2\] must be within \[0, 3\), got -1"),
    ],
)
def test_actions_of_another_task_are_refused(actions, message):
    with pytest.raises(ValueError, match=f"policy plans: {message}"):
        placements_of(make_task(num_layers=3), actions)
