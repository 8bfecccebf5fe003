"""Verdicts on targets: their bounds, intervals and seeds."""

import math
from dataclasses import replace

import pytest

from scenarios.frame.statistics import MeanInterval
from scenarios.study.targets.target import Goal, Target, measured
from scenarios.study.targets.target_table import MeasuredTargets, spread_of_seeds


def target(value, *, name="training time", reach=0.25):
    return Target(
        name=name,
        definition="d",
        reference="r",
        goal=Goal(sense="at least", target=reach),
        value=value,
        interval=None,
    )


def test_verdicts_change_at_the_target_and_at_the_stretch_target():
    below, at_least = (
        Goal(sense="below", target=0.1),
        Goal(sense="at least", target=1.0, stretch=2.0),
    )

    assert [below.verdict(value) for value in (0.0999, 0.1)] == ["met", "missed"]
    assert [at_least.verdict(value) for value in (2.0, 1.0, 0.9)] == ["exceeded", "met", "missed"]
    assert below.verdict(math.nan) == "not measured"
    with pytest.raises(ValueError, match=r"stretch must be stricter than target 1\.0, got 0\.5"):
        Goal(sense="at least", target=1.0, stretch=0.5)


@pytest.mark.parametrize(
    ("value", "half_width", "verdict"),
    [
        (3.0, 0.75, "exceeded"),
        (2.0, 0.75, "met"),  # the interval crosses the stretch target only
        (1.75, 0.75, "met"),  # its low end is the target, which "at least" allows
        (1.5, 0.75, "inconclusive"),
        (0.5, 0.5, "inconclusive"),
        (0.5, 0.25, "missed"),
        (1.5, math.nan, "met"),
        (1.5, math.inf, "inconclusive"),
        (math.nan, 0.75, "not measured"),
    ],
)
def test_a_verdict_holds_for_the_whole_interval(value, half_width, verdict):
    goal = Goal(sense="at least", target=1.0, stretch=2.0)
    mirrored = Goal(sense="at most", target=-1.0, stretch=-2.0)

    assert goal.verdict(value, half_width) == verdict
    assert mirrored.verdict(-value, half_width) == verdict


def test_an_interval_that_is_not_of_the_value_does_not_judge_it():
    """Such as that of the mean of times, of which the 99th percentile is judged."""
    wide = MeanInterval(mean=0.5, half_width=0.4)
    percentile = replace(target(0.2), interval=wide)
    mean = replace(target(0.5), interval=wide)

    assert (percentile.verdict, mean.verdict) == ("missed", "inconclusive")
    assert math.isnan(percentile.half_width)
    assert mean.half_width == 0.4


def test_inconclusive_targets_of_seeds_are_named_and_not_missed():
    unsure = replace(target(0.3), interval=MeanInterval(mean=0.3, half_width=0.1))
    seeds = MeasuredTargets(columns=("a", "b"), targets=((unsure,), (target(0.3),)))

    assert seeds.missed == []
    assert seeds.inconclusive == ["training time"]
    assert seeds.open_targets == ["inconclusive: training time"]
    assert spread_of_seeds(seeds).notes[1:] == (
        "none misses a target",
        "inconclusive for at least one: training time",
    )


def test_nothing_measured_is_no_figure():
    value, interval = measured([])

    assert math.isnan(value)
    assert interval is None


def test_what_is_measured_in_a_quick_run_is_never_met():
    quick = [replace(target(value), is_quick=True) for value in (0.5, 0.2, math.nan)]

    assert [one.verdict for one in quick] == ["quick", "missed", "not measured"]
    seeds = MeasuredTargets(columns=("a", "b"), targets=((quick[0],), (quick[0],)))
    assert spread_of_seeds(seeds).verdict == "quick"


def test_a_plan_that_does_not_fit_misses_its_target():
    value, interval = measured([0.001, math.inf])

    assert Goal(sense="at most", target=0.02).verdict(value) == "missed"
    assert interval is None


def test_seeds_are_judged_by_their_range_and_only_if_all_reach():
    """Savings of 0.5 and 0.502: times 0.5 and 0.498, a range of 0.002 over a mean of 0.499."""
    close = MeasuredTargets(columns=("a", "b"), targets=((target(0.5),), (target(0.502),)))
    missing = MeasuredTargets(columns=("a", "b"), targets=((target(0.5),), (target(0.2),)))
    alone = MeasuredTargets(columns=("a",), targets=((target(0.5),),))

    assert spread_of_seeds(close).value == pytest.approx(0.002 / 0.499)
    assert spread_of_seeds(close).verdict == "met"
    assert spread_of_seeds(missing).verdict == "missed"
    assert spread_of_seeds(alone).verdict == "not measured"


def test_controls_miss_nothing_and_learning_is_better_where_intervals_do_not_touch():
    """0.5 ± 0.1 against 0.2 ± 0.1 is better; against 0.35 ± 0.1 it cannot be told."""

    def spread(value: float, name: str) -> Target:
        interval = MeanInterval(mean=value, half_width=0.1)
        return replace(target(value, name=name, reach=0.25), interval=interval)

    table = MeasuredTargets(
        columns=("a", "b", "random"),
        targets=tuple(
            (spread(first, "time"), spread(second, "gap"), target(math.nan, name="other"))
            for first, second in ((0.5, 0.5), (0.51, 0.5), (0.1, 0.35))
        ),
        num_controls=1,
    )

    assert (table.missed, table.inconclusive) == ([], [])
    assert table.has_seeds
    assert "2 of 5 seeds" in spread_of_seeds(table).notes
    assert table.worth == ["learnt policies are better than random in all but gap"]
    assert not spread(0.5, "x").is_better_than(spread(0.3, "x"))
    less = Goal(sense="at most", target=0.0)
    assert replace(target(0.1), goal=less).is_better_than(replace(target(0.2), goal=less))


def test_gains_over_a_control_are_paired():
    """Gains of 1/8 in each of three worlds, though the worlds differ by 5/8: better.

    With the other seed they are 1/16, 1/8 and 3/16: 0.125 ± 4.303 x 0.0625 / sqrt(3) is not.
    """

    def column(*values: float) -> tuple[Target, ...]:
        value, interval = measured(values)
        return (replace(target(value), interval=interval, values=values),)

    columns = [column(0.125, 0.625, 1.0), column(0.25, 0.625, 0.875), column(0.125, 0.5, 0.75)]
    less = Goal(sense="at most", target=0.0)

    def worth(*targets: tuple[Target, ...]) -> list[str]:
        names = ("a", "b", "random")[3 - len(targets) :]
        return MeasuredTargets(columns=names, targets=targets, num_controls=1).worth

    assert worth(*columns[1:]) == [
        "learnt policies are better than random in all targets",
        "gains over random, paired: training time +12.5 ± 0",
    ]
    assert worth(*columns) == [
        "learnt policies are better than random in no target",
        "gains over random, paired: training time +12.5 ± 16",
    ]
    behind, ahead = (tuple(replace(one, goal=less) for one in found) for found in columns[1:])
    assert worth(behind, ahead)[1].endswith("training time -12.5 ± 0 (worse)")
    assert columns[0][0].gain_over(replace(columns[1][0], values=())) is None
