"""Calibration in step with a training: what is ordered when, what takes effect when, and why."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration import ReferenceRunError
from calibration.fit.errors import Errors
from calibration.loop import (
    CalibrationLoop,
    CalibrationRound,
    Region,
    Timetable,
    default_interval_steps,
)
from calibration.loop.loop import NEW_LOGS, SCHEDULED
from des import NO_CORRECTIONS, Corrections, Placement

HALF = Corrections(wan_bandwidth_factor=0.5)

EVEN = Placement.even(3, 6)
ALL_ON_ONE = Placement(domain_of_layer=(0,) * 6)


class Answers:
    """Calibrates by a function of the order, when it is asked for the result; keeps the orders."""

    cpu_s = 0.0

    def __init__(self, answer):
        self.answer, self.orders, self.waiting, self.logs = answer, [], None, ""

    def sources(self):
        return self.logs

    def submit(self, order):
        assert self.waiting is None
        self.orders.append(order)
        self.waiting = order

    def collect(self):
        order, self.waiting = self.waiting, None
        return self.answer(order)

    def close(self):
        self.waiting = None


def found(order, *, error=0.0, corrections=None, placements=(EVEN,)):
    """A calibration's result of one figure."""
    errors = Errors(mean=error, p95=error, bias=error, worst=error, worst_case="", kendall_tau=None)
    return CalibrationRound(
        num_cases=1,
        before=errors,
        after=errors,
        corrections=order.in_force if corrections is None else corrections,
        reason="so it was answered",
        region=Region.around(placements),
    )


def a_loop(answer=found, *, total_steps=120, interval=40, bound=0.02):
    """Calibrations at 0, 40 and 80, in force after 20 more; looks for drift at 20, 60 and 100."""
    timetable = Timetable(total_steps=total_steps, interval_steps=interval)
    answers = Answers(answer)
    return CalibrationLoop(answers, timetable, initial=NO_CORRECTIONS, bound=bound), answers


def run(loop, steps, choices=((EVEN, 1),)):
    """Advance through steps; return what was over at each."""
    return {step: over for step in steps if (over := loop.advance(step, lambda: choices))}


def test_orders_and_effects_follow_from_the_steps():
    """Ordered at 0 for 0, at 20 for 40, at 40 for 60, ...; at 100 nothing could take effect."""
    loop, answers = a_loop()
    loop.start()

    over = run(loop, range(0, 121, 4))

    assert [order.kind for order in answers.orders] == ["fit", "probe", "fit", "probe", "fit"]
    entries = [entry for group in over.values() for entry in group]
    assert [(each.ordered_at_step, each.in_force_from_step) for each in entries] == [
        (0, 0),
        (20, 40),
        (40, 60),
        (60, 80),
        (80, 100),
    ]
    assert [each.cause for each in entries] == ["before training", *[SCHEDULED] * 4]


def test_factors_are_in_force_from_their_step_and_not_before():
    loop, _ = a_loop(lambda order: found(order, corrections=HALF if order.number == 2 else None))
    loop.start()

    before = run(loop, range(0, 59))
    assert loop.in_force == NO_CORRECTIONS
    after = run(loop, [60])

    assert loop.in_force == HALF
    assert not any(entry.is_changed for group in before.values() for entry in group)
    assert [entry.is_changed for entry in after[60]] == [True]
    assert "wan_bandwidth_factor 0.5 from step 60" in after[60][0].line()


@pytest.mark.parametrize(("num_outside", "kind"), [(10, "probe"), (11, "fit")])
def test_placements_outside_the_region_are_drift_where_they_are_not_few(num_outside, kind):
    loop, answers = a_loop()
    loop.start()

    run(loop, [0])
    run(loop, [20], choices=((EVEN, 100 - num_outside), (ALL_ON_ONE, num_outside)))

    assert answers.orders[-1].kind == kind
    (entry,) = run(loop, [40])[40]
    drift = "drift: 11% of the policy's placements left the region"
    assert (entry.cause == drift) == (kind == "fit")


def test_a_probe_above_the_bound_is_drift():
    """Interval 2,000,000: the lead is 500,000, so the probe of 1,000,000 answers at 1,500,000."""
    loop, answers = a_loop(
        lambda order: found(order, error=0.05 if order.kind == "probe" else 0.0),
        interval=2_000_000,
        total_steps=10_000_000,
    )
    loop.start()

    over = run(loop, [0, 1_000_000, 1_500_000, 2_000_000])

    assert [order.kind for order in answers.orders] == ["fit", "probe", "fit", "fit"]
    (entry,) = over[2_000_000]
    assert entry.cause == "drift: error 5.00% of the policy's placements is above 2.00%"
    (probe,) = over[1_500_000]
    assert probe.is_drift
    assert ", which is drift; " in probe.line()


@given(data=st.data(), total_steps=st.integers(1, 400), interval=st.integers(1, 300))
def test_a_run_that_is_stopped_anywhere_goes_on_as_if_it_had_not(data, total_steps, interval):
    """Whatever the steps of the updates, and however often the state is saved and loaded."""
    steps = sorted({0, *data.draw(st.lists(st.integers(1, total_steps), max_size=30))})
    stops = data.draw(st.sets(st.sampled_from(steps)))

    def answer(order):
        error = 0.001 * (order.number % 7) * (order.kind == "probe") * 10
        factors = replace(order.in_force, wan_latency_factor=1.0 + order.number)
        return found(order, error=error, corrections=factors if order.number % 3 else None)

    def choices(step):
        return ((EVEN, 5), (ALL_ON_ONE, 1 + step % 3))

    through, _ = a_loop(answer, total_steps=total_steps, interval=interval)
    through.start()
    stopped, _ = a_loop(answer, total_steps=total_steps, interval=interval)
    stopped.start()
    for step in steps:
        through.advance(step, lambda: choices(step))  # noqa: B023 - asked at once
        stopped.advance(step, lambda: choices(step))  # noqa: B023
        if step in stops:
            state = stopped.state()
            stopped, _ = a_loop(answer, total_steps=total_steps, interval=interval)
            stopped.load_state(state)
        assert stopped.in_force == through.in_force

    assert stopped.state() == through.state()


@given(
    num_updates=st.integers(1, 100),
    steps_per_update=st.integers(1, 50),
    interval=st.integers(1, 1000),
)
def test_whatever_is_ordered_is_in_force_for_a_step_of_training(
    num_updates, steps_per_update, interval
):
    """The last updates find nothing under way, and what was found was found before the end."""
    total_steps = num_updates * steps_per_update
    timetable = Timetable(
        total_steps=total_steps, interval_steps=interval, steps_per_update=steps_per_update
    )
    answers = Answers(found)
    loop = CalibrationLoop(answers, timetable, initial=NO_CORRECTIONS, bound=0.02)
    loop.start()

    over = run(loop, range(0, total_steps + 1, steps_per_update))

    assert answers.waiting is None
    assert all(step < total_steps for step in over)


def test_a_calibration_that_fails_is_the_error_of_its_caller():
    def fail(order):
        raise ReferenceRunError("no finish lines")

    loop, _ = a_loop(fail)
    loop.start()

    with pytest.raises(ReferenceRunError, match="no finish lines"):
        loop.advance(0, lambda: ((EVEN, 1),))


@pytest.mark.parametrize(
    ("total_steps", "num"), [(1_000_000, 3), (4_999_999, 3), (5_000_000, 1), (20_000_000, 4)]
)
def test_short_trainings_are_calibrated_three_times_and_long_ones_every_five_million(
    total_steps, num
):
    interval = default_interval_steps(total_steps)
    loop, answers = a_loop(total_steps=total_steps, interval=interval)
    loop.start()

    run(loop, range(0, total_steps + 1, 8192))

    assert sum(order.kind == "fit" for order in answers.orders) == num


@pytest.mark.parametrize(
    ("field", "value"), [("total_steps", 0), ("interval_steps", 0), ("interval_steps", 1.5)]
)
def test_wrong_timetables_are_refused(field, value):
    with pytest.raises(ValueError, match=f"calibration: {field} must be"):
        Timetable(**{"total_steps": 10, "interval_steps": 5, field: value})


def test_other_logs_call_for_a_calibration_once_also_after_a_resumption():
    loop, answers = a_loop()
    loop.start()
    for step in (0, 10):
        loop.advance(step, lambda: ((EVEN, 1),))
    answers.logs = "another"
    loop.advance(11, lambda: ((EVEN, 1),))
    state = loop.state()
    assert state["pending"]["cause"] == NEW_LOGS

    resumed, again = a_loop()
    again.logs = "another"
    resumed.load_state(state)
    resumed.advance(31, lambda: ((EVEN, 1),))
    resumed.advance(32, lambda: ((EVEN, 1),))
    assert [one.kind for one in again.orders] == ["fit", "probe"]
