"""Rounds of benchmarks: turns, rates, ratios, and checkouts in processes of their own."""

import time

import pytest

from bench.revisions import ROOT, play_round, rows_of, timed
from bench.revisions import main as revisions_main
from bench.timing import QUICK, Contestant, Effort, Timing, race, speed_ratio


def test_first_call_is_not_in_the_rounds_and_turns_alternate():
    calls = []
    contestants = [
        Contestant(name=name, call=lambda name=name: calls.append(name)) for name in "ab"
    ]

    timings = race(contestants, Effort(num_rounds=3, turn_s=0.0))

    assert "".join(calls) == "ab" + "ababab"  # compile, measure; a turn of no length is a call
    assert [timing.name for timing in timings] == ["a", "b"]
    assert all(len(timing.wall_s) == len(timing.cpu_s) == 3 for timing in timings)


def test_turns_are_filled_with_calls():
    calls = []
    race([Contestant(name="a", call=lambda: calls.append(1))], Effort(num_rounds=1, turn_s=0.01))

    assert len(calls) > 100


def test_rates_and_ratios_are_medians_over_rounds():
    fast = Timing(name="fast", first_call_s=9.0, wall_s=(1.0, 2.0, 4.0), cpu_s=(0.5, 1.0, 2.0))
    slow = Timing(name="slow", first_call_s=9.0, wall_s=(1.0, 1.0, 1.0), cpu_s=(5.0, 3.0, 8.0))

    assert fast.items_per_s == 0.5
    assert fast.items_per_cpu_s == 1.0
    assert fast.spread_fraction == 0.75
    assert speed_ratio(fast, slow) == 4.0  # of 10, 3 and 4


def test_a_call_of_many_items_counts_as_many(monkeypatch):
    """A call moves the clock by 1 s: that is the first call, and a tenth of it an item."""
    seconds = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[0])

    def tick():
        seconds[0] += 1.0

    (timing,) = race([Contestant(name="a", call=tick, num_items=10)], QUICK)

    assert timing.first_call_s == pytest.approx(1.0)
    assert timing.wall_s == pytest.approx((0.1,))


def test_a_checkout_is_timed_by_a_process_of_its_own():
    with timed(ROOT, is_quick=True) as one:
        turns = play_round(one, one, is_quick=True)

    assert {case.partition(",")[0] for case in turns} == {
        "by events", "batch", "batch with metrics", "all results", "many plans",
    }  # fmt: skip
    assert all(time_s > 0.0 for pairs in turns.values() for pair in pairs for time_s in pair)


def test_ratios_are_of_speeds_with_intervals_over_rounds():
    rounds = [{"one": [(2.0, 1.0), (4.0, 4.0), (2.0, 1.0)]}, {"one": [(3.0, 1.5)]}]

    (row,) = rows_of(rounds)
    assert (row.ratio, row.low, row.high) == pytest.approx((2.0, 2.0, 2.0))
    assert (row.before_per_s, row.now_per_s) == pytest.approx((5 / 12, 5 / 6))
    (wide,) = rows_of([{"one": [(1.0, 1.0)]}, {"one": [(1.0, 0.25)]}])
    assert wide.ratio == pytest.approx(2.0)
    assert wide.low < 0.01
    assert wide.high > 100.0


def test_only_a_checkout_can_be_timed(tmp_path, capsys):
    with pytest.raises(SystemExit):
        revisions_main([str(tmp_path)])
    assert f"CHECKOUT must be a folder that holds bench, got {tmp_path}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        revisions_main([str(ROOT), "--rounds", "1"])
    assert "--rounds must be at least 2, got 1" in capsys.readouterr().err
