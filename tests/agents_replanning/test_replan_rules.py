"""Rules of re-planning: episodes solved by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from epoch_cases import drawn_tables, tables_by_hand
from strategies import plan

from agents.replanning.rules import (
    Clairvoyant,
    FollowTheLeader,
    Horizon,
    clairvoyant,
    expected_undone,
    greedy,
    hold,
    value_iteration,
)
from agents.replanning.table import RULES
from agents.replanning.tables import foreseen, join_tables, levels_of, total_s

TURN = tables_by_hand(
    [[10.0, 12.0], [10.0, 6.0], [10.0, 6.0], [10.0, 20.0]],
    [[0.0, 24.0], [24.0, 0.0]],
    base_s=[9.0, 11.0],
    epoch_s=60.0,
)
"""In a minute 6 iterations, or 5, 10, 10 and 3; a change takes 24 s."""


def test_holding_stays_with_the_plan_that_is_best_at_base_figures():
    assert hold(TURN).tolist() == [0, 0, 0, 0]
    assert total_s(TURN, hold(TURN)) == 40.0


def test_greedy_takes_the_best_of_each_epoch_whatever_it_costs():
    assert greedy(TURN).tolist() == [0, 1, 1, 0]
    assert total_s(TURN, greedy(TURN)) == 240 * 4 / (6 + 36 / 6 + 10 + 36 / 10)


@pytest.mark.parametrize(
    ("num_epochs", "path"),
    [
        (0.0, [0, 0, 0, 0]),
        (0.4, [0, 0, 0, 0]),  # nothing is done within the change
        (1.0, [0, 0, 0, 0]),  # (60 - 24) / 6 = 60 / 10
        (1.3, [0, 1, 1, 0]),  # (78 - 24) / 6 > 78 / 10; (78 - 24) / 10 > 78 / 20
        (math.inf, [0, 1, 1, 0]),
    ],
)
def test_a_horizon_moves_where_the_present_epoch_times_so_many_pays_for_it(num_epochs, path):
    assert Horizon(num_epochs)(TURN).tolist() == path


def test_a_horizon_sticks_to_where_it_went_and_pays_each_time():
    """Half a minute leaves 21 s: 2.1 iterations, more than 30 / 30 or 30 / 15, not 30 / 14."""
    tables = tables_by_hand(
        [[30.0, 10.0], [10.0, 14.0], [10.0, 15.0]],
        [[0.0, 9.0], [9.0, 0.0]],
        base_s=[1.0, 2.0],
        epoch_s=60.0,
    )

    path = Horizon(0.5)(tables)

    assert path.tolist() == [1, 1, 0]
    done = 60 / 10 + 60 / 14 + 51 / 10  # the first plan is free
    assert total_s(tables, path) == pytest.approx(180 * 3 / done)


def test_the_leader_is_the_horizon_whose_own_run_has_cost_least_before():
    """Runs of n = 0 and of n = 2 have done 6, 12 and 18 iterations against 6, 12 and 22.

    So 0 leads into all epochs but the last, in which it keeps the first plan, as 2 would.
    """
    rule = FollowTheLeader((0.0, 2.0))

    assert rule.leaders(TURN).tolist() == [0.0, 0.0, 0.0, 2.0]
    assert rule(TURN).tolist() == [0, 0, 0, 0]


def test_who_follows_a_leader_pays_for_getting_there():
    """The run of n = 2 moves at once and leads from the third epoch on; the follower moves then."""
    tables = tables_by_hand(
        [[10.0, 10.0], [10.0, 6.0], [10.0, 6.0], [10.0, 6.0]],
        [[0.0, 18.0], [18.0, 0.0]],
        base_s=[1.0, 2.0],
        epoch_s=60.0,
    )
    rule = FollowTheLeader((0.0, 2.0))

    assert rule.leaders(tables).tolist() == [0.0, 0.0, 2.0, 2.0]
    assert rule(tables).tolist() == [0, 0, 1, 1]


def test_value_iteration_counts_on_the_mean_of_epochs_to_come():
    """Epochs of 8 s are equally likely to do (4, 1) or (1, 2) iterations; a change takes 1 s.

    With one to come, who has the first plan expects (4 + max(1, 7 / 4)) / 2 = 2.875 and who has the
    second (7 / 2 + 2) / 2 = 2.75. Two to come: from the first 4 + 2.875 and 7 / 4 + 2.75, from the
    second 7 / 2 + 2.875 and 2 + 2.75.
    """
    law = tables_by_hand(
        [[2.0, 8.0], [8.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]], base_s=[1.0, 2.0], epoch_s=8.0
    )

    expected = [[0.0, 0.0], [-2.875, -2.75], [-5.6875, -5.5625]]
    assert expected_undone(law, 3).tolist() == expected


def test_value_iteration_does_not_chase_what_it_believes_to_pass():
    """One epoch in four is bad for the first plan, and all others for the second.

    A change takes as long as an epoch: to go and come back never pays if epochs are drawn
    independently; greedy goes, and a long horizon.
    """
    times_s = [[1.0, 11.0], [4.0, 1.0], [1.0, 11.0], [1.0, 11.0]]
    tables = tables_by_hand(times_s, [[0.0, 4.0], [4.0, 0.0]], base_s=[1.0, 2.0], epoch_s=4.0)

    assert value_iteration(tables).tolist() == [0, 0, 0, 0]
    assert Horizon(4.0)(tables).tolist() == [0, 1, 0, 0]


def test_value_iteration_learns_from_other_draws_where_they_are_given():
    """Where the samples say that the second plan is better and changes get dear, it goes at once.

    To come: 0, 1 and 10 iterations for who has the first plan, 0, 9 and 18 with the second.
    """
    moves, dear_moves = 4.0 * (1.0 - np.eye(2)), 8.0 * (1.0 - np.eye(2))
    tables = tables_by_hand([[1.0, 1.5]] * 3, moves, base_s=[1.0, 2.0], epoch_s=9.0)
    dear = tables_by_hand([[9.0, 1.0]], dear_moves, base_s=[1.0, 2.0], epoch_s=9.0)
    samples = join_tables([dear, dear])

    assert expected_undone(samples, 3).tolist() == [[0.0, 0.0], [-1.0, -9.0], [-10.0, -18.0]]
    assert value_iteration(tables).tolist() == [0, 0, 0]
    assert value_iteration(tables, samples).tolist() == [1, 1, 1]


def test_value_iteration_refuses_samples_of_other_plans():
    with pytest.raises(ValueError, match="samples must be of the 2 plans"):
        value_iteration(TURN, drawn_tables(0, 2, 3))
    with pytest.raises(ValueError, match="parts must be of the same plans, got 2"):
        join_tables([TURN, drawn_tables(0, 2, 3)])


def test_the_clairvoyant_begins_where_it_wants_to_be_later():
    """To begin with the second plan is free: 5, 10 and 10 iterations, then 3.6 after the change.

    Where a change takes twice as long it stays.
    """
    dear = replace(TURN, move_s=2.0 * TURN.move_s)

    assert clairvoyant(TURN).tolist() == [1, 1, 1, 0]
    assert total_s(TURN, clairvoyant(TURN)) == pytest.approx(240 * 4 / 28.6)
    assert clairvoyant(dear).tolist() == [1, 1, 1, 1]


def test_a_clairvoyant_of_fewer_levels_keeps_to_them():
    """The third plan has another order, and is the best in the second epoch."""
    plans = (plan(0, 0, 1), plan(0, 1, 1), plan(1, 0, 0))
    tables = tables_by_hand(
        [[1.0, 5.0, 5.0], [5.0, 3.0, 1.0]], np.zeros((3, 3)), base_s=[1.0, 2.0, 3.0]
    )
    tables = replace(tables, plans=plans, level=levels_of(plans))

    assert Clairvoyant(("depth", "split"))(tables).tolist() == [0, 1]
    assert Clairvoyant(())(tables).tolist() in ([0, 0], [2, 2])
    assert clairvoyant(tables).tolist() == [0, 2]
    with pytest.raises(ValueError, match="levels must be some of nothing, depth, split, order"):
        Clairvoyant(("all",))


def test_a_plan_that_does_not_work_is_left_and_never_taken():
    tables = tables_by_hand(
        [[1.0, 2.0, 3.0], [math.inf, 2.0, 3.0], [1.0, 2.0, 3.0]],
        [[0.0, 9.0, 5.0], [9.0, 0.0, 9.0], [5.0, 9.0, 0.0]],
        base_s=[1.0, 2.0, 3.0],
    )

    assert hold(tables).tolist() == [0, 2, 2]
    assert greedy(tables).tolist() == [0, 1, 0]
    assert math.isfinite(total_s(tables, clairvoyant(tables)))


def test_where_a_change_costs_the_restart_alone_rules_follow_the_network():
    each_s = np.broadcast_to(1.0 - np.eye(TURN.num_plans), TURN.move_s.shape)
    cheap = replace(TURN, move_s=each_s.copy(), moved_bytes=np.zeros_like(TURN.moved_bytes))

    assert Horizon(1.0)(cheap).tolist() == [0, 1, 1, 0]
    done = 6 + 59 / 6 + 10 + 59 / 10
    assert total_s(cheap, Horizon(1.0)(cheap)) == pytest.approx(240 * 4 / done)


LATER = replace(
    tables_by_hand(
        [[10.0, 12.0, 1.0], [10.0, 6.0, 1.0], [10.0, 6.0, 1.0]],
        2.0 * (1.0 - np.eye(3)),
        base_s=[9.0, 11.0, 5.0],
        epoch_s=10.0,
    ),
    known_from=np.array([0, 0, 2]),
)
"""A change takes 2 s. The third plan is the best in all epochs, and unknown in the first two."""


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        (hold, [0, 0, 0]),
        (Horizon(1.0), [0, 1, 2]),  # 8 / 6 > 10 / 10; 8 / 1 > 10 / 6
        (Horizon(0.3), [0, 0, 2]),  # 1 / 6 < 3 / 10; 1 / 1 > 3 / 10
        (greedy, [0, 1, 2]),
        (FollowTheLeader((1.0,)), [0, 1, 2]),
        (FollowTheLeader((0.0, 1.0)), [0, 0, 2]),
        (value_iteration, [0, 1, 2]),
    ],
)
def test_rules_take_no_plan_before_it_is_known(rule, path):
    """Runs of 0 and 1 do 1 and 2 iterations against 1 and 2.33, so 1 leads into the last epoch.

    Who follows them goes from the first plan to the third one then.
    """
    assert rule(LATER).tolist() == path


def test_where_all_plans_are_known_rules_take_them_at_once():
    every = foreseen(LATER)

    assert every.static == 2
    assert LATER.static == 0
    for rule in (hold, Horizon(1.0), greedy, FollowTheLeader(), value_iteration):
        assert rule(every).tolist() == [2, 2, 2]


def test_the_clairvoyant_knows_plans_before_networks_yield_them():
    assert clairvoyant(LATER).tolist() == [2, 2, 2]


def test_value_iteration_does_not_count_on_plans_that_are_not_known_yet():
    """The second plan is a tenth slower; from it alone the third is near, ten times as quick.

    With three epochs, who knows of the third goes to the second at once, 9 / 11 + 9 + 10 iterations
    against 15 + 1; to the third it is too far then, -15 / 50 + 20. Who does not know stays with the
    first one, and at last goes over, for 5 against 1.
    """
    moves = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    times = [[10.0, 11.0, 50.0], [10.0, 11.0, 1.0], [10.0, 11.0, 1.0]]
    law = tables_by_hand([[10.0, 11.0, 1.0]], moves, base_s=[1.0, 2.0, 3.0], epoch_s=10.0)
    far = [5.0 * moves, moves, moves]
    far[0][1, 0] = far[0][0, 1] = 1.0
    every = tables_by_hand(times, far, base_s=[1.0, 2.0, 3.0], epoch_s=10.0)
    later = replace(every, known_from=np.array([0, 0, 2]))

    assert value_iteration(later, law).tolist() == [0, 0, 2]
    assert value_iteration(every, law).tolist() == [1, 2, 2]


def test_where_no_known_plan_works_the_present_one_stays():
    tables = tables_by_hand(
        [[1.0, 2.0, 1.0], [math.inf, math.inf, 1.0]], 1.0 - np.eye(3), base_s=[1.0, 2.0, 3.0]
    )
    tables = replace(tables, known_from=np.array([0, 0, 2]))

    for name, rule in RULES.items():
        if name != "clairvoyant":
            assert rule(tables).tolist() == [0, 0], name
