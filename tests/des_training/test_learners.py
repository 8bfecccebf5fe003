"""Learners as processes: merges equal to the recursion, tokens that add up, and failures."""

import math
from itertools import accumulate, count, pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from des import DecoupledDiLoCo
from des.plan.learners import Learners, outer_steps
from des.training.learners import restarts, run_learners, useful_fraction

TIMES_S = st.sampled_from([0.5, 1.0, 1.5, 3.0]) | st.floats(0.1, 5.0)
"""Simple ones, so that learners report at the same moment."""


@st.composite
def learners(draw):
    """Up to five learners with any quorum, grace and overlap."""
    step_s = draw(st.lists(TIMES_S, min_size=1, max_size=5))
    steps_between = draw(st.integers(2, 8))
    return Learners(
        mode=DecoupledDiLoCo(
            steps_between=steps_between,
            quorum=draw(st.integers(1, len(step_s))),
            grace_steps=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 10.0])),
            overlap_steps=draw(st.integers(0, steps_between - 1)),
        ),
        step_s=tuple(step_s),
        tokens=tuple(draw(st.integers(1, 9)) for _ in step_s),
        merge_s=draw(st.sampled_from([0.0, 0.5, 3.0]) | st.floats(0.0, 20.0)),
    )


def alike(quorum, num_learners=3, steps_between=2):
    """Learners of steps of 1 s that report every second one."""
    mode = DecoupledDiLoCo(steps_between=steps_between, quorum=quorum)
    ones = (1,) * num_learners
    return Learners(mode=mode, step_s=(1.0,) * num_learners, tokens=ones, merge_s=0.0)


def never():
    return iter(())


@settings(max_examples=examples(100), deadline=None)
@given(one=learners(), num_periods=st.integers(1, 4))
def test_processes_and_recursion_have_equal_merges_to_the_last_bit(one, num_periods):
    known = outer_steps(one, num_periods)
    found = run_learners(one, math.nextafter(known[-1].end_s, math.inf)).outer_steps

    assert found[: len(known)] == known


@settings(max_examples=examples(60), deadline=None)
@given(one=learners(), until_s=st.floats(1.0, 60.0))
def test_tokens_are_merged_or_on_their_way(one, until_s):
    """What a learner has done is merged, or reported once, or done since that report."""
    history = run_learners(one, until_s)
    done = sum(own * steps for own, steps in zip(one.tokens, history.num_steps, strict=True))
    left = done - one.merge_tokens(history.outer_steps)

    most = one.mode.steps_between + one.mode.overlap_steps
    assert 0 <= left <= most * sum(one.tokens)
    assert all(
        steps <= until_s / own_s * (1 + 1e-9)
        for steps, own_s in zip(history.num_steps, one.step_s, strict=True)
    )


@settings(max_examples=examples(60), deadline=None)
@given(one=learners())
def test_merges_follow_each_other_and_have_their_quorum(one):
    steps = outer_steps(one, 3)

    for before, after in pairwise(steps):
        assert before.end_s <= after.begin_s
    for each in steps:
        reports_s = [at_s for at_s in each.reports_s if at_s < math.inf]
        assert len(reports_s) >= one.mode.quorum
        assert max(reports_s) <= each.begin_s


def test_a_failure_costs_its_step_and_a_restart_by_hand():
    """A fails at 2.5 s, and at 5 s in the restart of 4 s: from 9 s on it does steps again."""
    history = run_learners(
        alike(1, num_learners=2),
        12.5,
        outages_s=[restarts(iter([2.5, 5.0]), 4.0), never()],
    )
    reports_s = [one.reports_s[0] for one in history.outer_steps if one.members[0]]

    assert history.num_steps == (4, 12)
    assert reports_s == [2.0, 11.0]


def test_a_failing_learner_stops_those_alone_that_wait_for_it():
    """A fails after 3 s for 100 s: the others go on unless the quorum is all of them."""
    steps = []
    for quorum in (1, 2, 3):
        outages_s = [iter([(3.0, 103.0)]), never(), never()]
        history = run_learners(alike(quorum), 40.5, outages_s=outages_s)
        steps.append(history.num_steps)

    assert steps == [(3, 40, 40), (3, 40, 40), (3, 4, 4)]


def failures(seed, rate_per_s):
    """Times of a Poisson process. [s]"""
    rng = np.random.default_rng(seed)
    return accumulate(rng.exponential(1.0 / rate_per_s) for _ in count())


@pytest.mark.parametrize(("rate_per_s", "restart_s"), [(0.02, 10.0), (0.05, 30.0)])
def test_the_useful_fraction_is_that_of_processes(rate_per_s, restart_s):
    """About 6,000 failures; a standard deviation is 0.7 % or less."""
    one = alike(1, 20, steps_between=100)
    until_s = 300.0 / rate_per_s
    outages_s = [restarts(failures(seed, rate_per_s), restart_s) for seed in range(20)]
    history = run_learners(one, until_s, outages_s=outages_s)
    found = sum(history.num_steps) / (20 * until_s)

    assert found == pytest.approx(useful_fraction(rate_per_s, restart_s, 1.0), rel=0.03)


def test_without_restarts_and_with_short_steps_little_is_lost():
    assert useful_fraction(1e-6, 0.0, 1.0) == pytest.approx(1.0, abs=1e-6)
    assert useful_fraction(0.01, 100.0, 1e-9) == pytest.approx(math.exp(-1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"until_s": 0.0}, "until_s must be positive and finite, got 0.0"),
        ({"until_s": math.inf}, "until_s must be positive and finite"),
        ({"outages_s": [never()]}, "outages_s must be of each of 3, got 1"),
        (
            {"outages_s": [iter([(1.0, 4.0), (3.0, 5.0)]), never(), never()]},
            "outages_s must follow each other, got one from 3.0 to 5.0 s after one until 4.0 s",
        ),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"learners: {message}"):
        run_learners(alike(1), **({"until_s": 10.0} | changes))
    with pytest.raises(ValueError, match="num_periods must be a whole number"):
        outer_steps(alike(1), 0)
