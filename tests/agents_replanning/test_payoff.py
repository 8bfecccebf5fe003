"""Whether a change of plan pays: by hand, and the same answer from every place that decides it."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agents.replanning.payoff import pays, undone
from agents.replanning.rules import best_plans

TIMES_S = st.one_of(st.integers(1, 50).map(float), st.just(math.inf))


def test_a_change_pays_from_the_horizon_on_that_it_takes_to_save_its_cost():
    """30 s against a tenth of the time: 300 s only bring the cost back."""
    assert [pays(30.0, 9.0, 10.0, horizon_s) for horizon_s in (0.0, 300.0, 400.0, math.inf)] == [
        False,
        False,
        True,
        True,
    ]
    assert not pays(0.0, 100.0, 100.0, math.inf), "of equals the plan in force stays"


def test_plans_that_do_not_work_are_left_and_never_taken():
    assert pays(1e9, 100.0, math.inf, 0.0)
    assert not pays(math.inf, 1.0, math.inf, 4.0)
    assert not pays(0.0, math.inf, math.inf, 4.0)


@given(
    change_s=st.one_of(st.just(0.0), TIMES_S),
    new_s=TIMES_S,
    old_s=TIMES_S,
    horizon=st.sampled_from([0, 1, 4, math.inf]),
)
def test_two_plans_are_chosen_from_as_many_are(change_s, new_s, old_s, horizon):
    """`best_plans` of the plan in force and another takes the other exactly where that pays."""
    moves_s, iteration_s = np.array([[0.0, change_s]]), np.array([old_s, new_s])
    chosen = best_plans(moves_s, iteration_s, np.array([0]), np.array([float(horizon)]))

    assert bool(chosen[0]) == pays(change_s, new_s, old_s, float(horizon))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1),
    st.sampled_from([0, 2, math.inf]),
)
def test_arrays_are_added_up_as_numbers_are(plans, horizon):
    change_s, iteration_s = (
        np.array(column, dtype=np.float64) for column in zip(*plans, strict=True)
    )

    together = undone(change_s, iteration_s, np.array([float(horizon)]))

    assert together.tolist() == [
        undone(float(change), float(each), float(horizon)) for change, each in plans
    ]
