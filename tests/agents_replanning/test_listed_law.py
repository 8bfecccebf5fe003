"""Best policy without foresight, against every policy on small cases and against foresight."""

from itertools import pairwise, product

import numpy as np
import pytest
from epoch_cases import drawn_tables, tables_by_hand
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.replanning.listed_law import ListedLaw, follow_law
from agents.replanning.rules import clairvoyant, expected_undone
from agents.replanning.tables import total_s

EPOCHS = 3
TO_OTHER = np.array([[0.0, 1.0], [1.0, 0.0]])


def drawn_law(seed, *, num_networks=2, num_plans=2, stretch_epochs=1):
    """A law whose states are its networks, with random times, changes and chances."""
    rng = np.random.default_rng(seed)
    moves = rng.uniform(0.0, 1.5, (num_networks, num_plans, num_plans)) * (1.0 - np.eye(num_plans))
    chance = rng.uniform(0.05, 1.0, (num_networks, num_networks))
    return ListedLaw(
        epoch_s=1.0,
        iteration_s=rng.uniform(0.5, 2.0, (num_networks, num_plans)),
        move_s=moves,
        moves_of=np.arange(num_networks),
        state=np.arange(num_networks),
        chance=chance / chance.sum(axis=1, keepdims=True),
        stretch_epochs=stretch_epochs,
    )


def episode_of(law, networks):
    """Tables of an episode with given networks, an epoch each."""
    rows = list(networks)
    times_s = law.iteration_s[rows]
    return tables_by_hand(times_s, law.move_s[rows], base_s=np.ones(times_s.shape[1]))


def chance_of(law, networks):
    """Probability of networks, the first one given."""
    return float(np.prod([law.chance[old, new] for old, new in pairwise(networks)]))


def mean_done_of_all_policies(law):
    """Mean iterations of every map from what has been seen to a plan, the first network being 0."""
    courses = [(0, *later) for later in product(range(2), repeat=EPOCHS - 1)]
    seen = sorted({course[: epoch + 1] for course in courses for epoch in range(EPOCHS)})
    policies = np.array(list(product(range(2), repeat=len(seen))))
    mean = np.zeros(len(policies))
    for course in courses:
        plans = [policies[:, seen.index(course[: epoch + 1])] for epoch in range(EPOCHS)]
        pairs = list(zip(course, plans, strict=True))
        done = sum(1.0 / law.iteration_s[net, plan] for net, plan in pairs)
        for epoch in range(1, EPOCHS):
            net, plan = pairs[epoch]
            done = done - law.move_s[net, plans[epoch - 1], plan] / law.iteration_s[net, plan]
        mean += chance_of(law, course) * done
    return courses, mean


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_no_policy_without_foresight_is_better_on_the_mean(seed):
    """All 2^7 maps from the networks seen to a plan, two networks and plans, three epochs."""
    law = drawn_law(seed)
    courses, mean = mean_done_of_all_policies(law)

    def done(course):
        tables = episode_of(law, course)
        path = follow_law(tables, law, np.array(course)).tolist()
        moves = tables.undone_by_move[range(1, EPOCHS), path[:-1], path[1:]]
        return -tables.undone[range(EPOCHS), path].sum() - moves.sum()

    own = sum(chance_of(law, course) * done(course) for course in courses)

    assert own == pytest.approx(mean.max())


@given(seed=st.integers(0, 2**32 - 1), num_epochs=st.integers(1, 9), stretch=st.integers(1, 4))
@settings(max_examples=50)
def test_no_episode_is_better_than_the_clairvoyant_s(seed, num_epochs, stretch):
    law = drawn_law(seed, num_networks=3, num_plans=4, stretch_epochs=stretch)
    tables = drawn_tables(seed, num_epochs, 4)
    states = np.random.default_rng(seed).integers(3, size=num_epochs)

    path = follow_law(tables, law, states)

    assert total_s(tables, clairvoyant(tables)) <= total_s(tables, path) * (1 + 1e-12)


@given(seed=st.integers(0, 2**32 - 1), num_epochs=st.integers(1, 9))
@settings(max_examples=25)
def test_a_single_stretch_is_the_clairvoyant_s(seed, num_epochs):
    """Networks that stay to the end leave nothing to foresee."""
    tables = drawn_tables(seed, 1, 4)
    rows = [0] * num_epochs
    tables = tables_by_hand(tables.iteration_s[rows], tables.move_s[rows], base_s=np.ones(4))
    law = drawn_law(seed, num_plans=4, stretch_epochs=num_epochs)

    path = follow_law(tables, law, np.zeros(num_epochs, dtype=np.int64))

    assert total_s(tables, path) == pytest.approx(total_s(tables, clairvoyant(tables)))


def test_independent_epochs_have_the_values_of_value_iteration():
    samples = drawn_tables(7, 5, 3)
    law = ListedLaw(
        epoch_s=samples.epoch_s,
        iteration_s=samples.iteration_s,
        move_s=samples.move_s,
        moves_of=np.arange(5),
        state=np.zeros(5, dtype=np.int64),
        chance=np.full((1, 5), 0.2),
    )

    assert law.expected_undone(4)[::-1, 0] == pytest.approx(expected_undone(samples, 4))


def test_a_state_that_lasts_is_worth_a_move_and_one_that_passes_is_not():
    """A change costs 1.5 epochs of 10 s and doubles the pace while the second network lasts."""
    times = np.array([[1.0, 2.0], [2.0, 1.0]])

    def law(stays):
        return ListedLaw(
            epoch_s=10.0,
            iteration_s=times,
            move_s=np.array([15.0 * TO_OTHER]),
            moves_of=np.array([0, 0]),
            state=np.array([0, 1]),
            chance=np.array([[stays, 1.0 - stays], [1.0 - stays, stays]]),
        )

    tables = tables_by_hand(
        times[[0, 1, 1, 1, 1]], 15.0 * TO_OTHER, base_s=[1.0, 2.0], epoch_s=10.0
    )
    states = np.array([0, 1, 1, 1, 1])

    assert follow_law(tables, law(0.95), states).tolist() == [0, 1, 1, 1, 1]
    assert follow_law(tables, law(0.05), states).tolist() == [0, 0, 0, 0, 0]


def test_laws_that_do_not_match_are_refused():
    law = drawn_law(0)
    with pytest.raises(ValueError, match="must be of the 3 plans of the episode, got 2"):
        follow_law(drawn_tables(0, 2, 3), law, np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match="states must be 2 numbers from 0 to 1"):
        follow_law(drawn_tables(0, 2, 2), law, np.array([0, 2]))
    with pytest.raises(ValueError, match="chance must have 2 columns and rows that sum to 1"):
        ListedLaw(
            epoch_s=law.epoch_s,
            iteration_s=law.iteration_s,
            move_s=law.move_s,
            moves_of=law.moves_of,
            state=law.state,
            chance=0.5 * law.chance,
        )
