"""Days of gangs: siblings are on promised GPUs, and nothing stays behind."""

import os

import pytest
from gang_day import GangDay


def assert_day_leaves_nothing(seed: int, hours: float) -> GangDay:
    day = GangDay(seed=seed, hours=hours)
    day.run()

    book = day.decider.book
    assert not book.promises
    assert not book.grants
    assert all(len(book.free(name)) == len(node.free) for name, node in book.nodes.items())
    assert day.num_bound > 10 * hours
    assert day.num_on_promise == day.num_siblings > day.num_bound / 3
    return day


def test_an_hour_of_gangs_leaves_no_promise_behind():
    day = assert_day_leaves_nothing(seed=0, hours=1.0)

    assert day.num_failed > 0
    assert day.decider.book.num_expired > 0


@pytest.mark.soak
def test_a_day_of_gangs_leaves_no_promise_behind():
    for seed in range(int(os.environ.get("SEED", "1")), int(os.environ.get("SEED", "1")) + 3):
        day = assert_day_leaves_nothing(seed=seed, hours=24.0)
        assert day.decider.book.num_expired > 0
