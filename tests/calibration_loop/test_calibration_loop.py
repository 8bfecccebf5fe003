"""Calibration in step with a training: what is ordered when, what takes effect when, and why."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import is_running, python, wait_until
from reference_programs import fake_programs

from calibration import ReferenceRunError, WorkloadFamily
from calibration.fit.errors import Errors, Fidelity
from calibration.loop import (
    BackgroundCalibrator,
    CalibrationLoop,
    CalibrationRound,
    Order,
    Region,
    Subject,
    Timetable,
    calibrate,
    default_interval_steps,
)
from calibration.loop.loop import SCHEDULED
from calibration.runs.store import Store
from des import NO_CORRECTIONS, Corrections, Placement, Transport, build_workload, read_topology
from des.worlds import EAST_CENTRAL_WEST

HALF = Corrections(wan_bandwidth_factor=0.5)
EVEN = Placement.even(3, 6)
ALL_ON_ONE = Placement(domain_of_layer=(0,) * 6)


class Answers:
    """Calibrates by a function of the order, when it is asked for the result; keeps the orders."""

    cpu_s = 0.0

    def __init__(self, answer):
        self.answer, self.orders, self.waiting = answer, [], None

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
    fidelity = Fidelity(num_cases=1, makespan=errors, communication=errors, exposed=errors)
    return CalibrationRound(
        before=fidelity,
        after=fidelity,
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


def test_placements_outside_the_region_are_drift():
    loop, answers = a_loop()
    loop.start()

    run(loop, [0])
    run(loop, [20], choices=((EVEN, 89), (ALL_ON_ONE, 11)))

    assert answers.orders[-1].kind == "fit"
    (entry,) = run(loop, [40])[40]
    assert entry.cause == "drift: 11% of the policy's placements left the region"


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


def test_a_few_placements_outside_the_region_are_no_drift():
    loop, answers = a_loop()
    loop.start()

    run(loop, [0])
    run(loop, [20], choices=((EVEN, 90), (ALL_ON_ONE, 10)))

    assert answers.orders[-1].kind == "probe"


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


def test_a_calibration_that_fails_is_the_error_of_whoever_waits():
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


def a_subject(tmp_path: Path | None = None, way: str | None = None, **fields) -> Subject:
    """Eight layers of Llama 2 7B on East, Central and West, one message under way a sender."""
    topology = replace(
        read_topology(EAST_CENTRAL_WEST), transport=Transport(endpoints="one_in_flight")
    )
    family = WorkloadFamily(
        models=("llama2_7b",), num_layers=8, num_microbatches=(4, 4), schedules=("1f1b",)
    )
    return Subject(
        topology=topology,
        workload=build_workload("llama2_7b", num_layers=8, num_microbatches=4),
        schedule="1f1b",
        family=family,
        backend="aware",
        binaries=None if way is None else fake_programs(tmp_path / "bin", way),
        **{"num_placements": 10, "num_probed": 2} | fields,
    )


CHOICES = ((Placement.even(3, 8), 3), (Placement(domain_of_layer=(0,) * 8), 1))
FIRST = Order(number=0, kind="fit", in_force=NO_CORRECTIONS)


def test_factors_that_are_right_stay_and_wrong_ones_go():
    """Our engine agrees with `des`, so any other factors than 1 are wrong."""
    subject = a_subject()

    right = calibrate(subject, FIRST)
    wrong = calibrate(subject, replace(FIRST, in_force=HALF))

    assert right.corrections == wrong.corrections == NO_CORRECTIONS
    assert right.before.makespan.mean < 1e-6
    assert wrong.before.makespan.mean > 0.01
    assert wrong.after.makespan.mean < 1e-6


def test_a_network_of_half_the_bandwidth_is_found_out_by_its_program(tmp_path):
    """The program is a process that runs on half the bandwidth that it is told."""
    store = tmp_path / "runs.sqlite"
    subject = a_subject(tmp_path, "congested", num_placements=16, store=store)

    first = calibrate(subject, FIRST)

    assert first.before.makespan.mean > 0.01
    assert first.after.makespan.mean < first.before.makespan.mean / 20
    assert first.corrections.wan_bandwidth_factor == pytest.approx(0.5, rel=0.01)
    assert len(Store.open(store).rows()) == 16
    assert calibrate(subject, FIRST) == first  # by the store: no run is repeated


def test_half_of_a_fit_and_all_of_a_probe_are_what_the_policy_chooses():
    subject = a_subject(num_placements=12, num_probed=5)
    chosen = {placement for placement, _ in CHOICES}

    fitted, probed = (subject.cases(purpose, 3, CHOICES) for purpose in ("fit", "check"))

    assert sum(case.plan.placement in chosen for case in fitted) >= 6
    assert all(case.plan.placement in chosen for case in probed)
    assert {case.workload.num_microbatches for case in probed} == {4}
    assert {case.workload for case in probed} == {subject.workload}


def test_each_calibration_has_placements_of_its_own():
    subject = a_subject()

    assert subject.cases("fit", 1, ()) != subject.cases("fit", 2, ())
    assert subject.cases("fit", 1, ()) == subject.cases("fit", 1, ())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_placements": 8}, "must leave more than the 6 factors"),
        ({"num_probed": 0}, "num_probed must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_a_subject_that_cannot_be_calibrated_is_refused_at_once(fields, message):
    with pytest.raises(ValueError, match=message):
        a_subject(**fields)


def test_a_world_that_the_reference_cannot_express_is_refused_at_once():
    topology = replace(read_topology(EAST_CENTRAL_WEST), transport=Transport(sharing="fair"))
    with pytest.raises(ValueError, match=r"transport\.sharing"):
        replace(a_subject(), topology=topology)


def test_the_background_finds_what_is_found_here():
    subject = a_subject()
    second = Order(number=1, kind="probe", in_force=HALF, choices=CHOICES)
    calibrator = BackgroundCalibrator(subject)
    try:
        results = []
        for order in (FIRST, second):
            calibrator.submit(order)
            results.append(calibrator.collect())
        cpu_s = calibrator.cpu_s
    finally:
        calibrator.close()

    assert results == [calibrate(subject, FIRST), calibrate(subject, second)]
    assert cpu_s > 0.0


def test_a_process_that_dies_before_it_is_told_anything_is_an_error(monkeypatch, tmp_path):
    """Its modules are others, which end it at once."""
    package = tmp_path / "calibration" / "loop"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "process.py").write_text("raise SystemExit(7)")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    calibrator = BackgroundCalibrator(a_subject())

    with pytest.raises(ReferenceRunError, match="died with exit code 7"):  # noqa: PT012
        calibrator.submit(FIRST)
        calibrator.collect()


def test_a_process_that_is_not_needed_any_more_ends_in_silence(capfd):
    for _ in range(2):
        calibrator = BackgroundCalibrator(a_subject())
        calibrator.submit(FIRST)
        calibrator.collect()
        calibrator.close()

    assert capfd.readouterr() == ("", "")


def test_a_program_that_hangs_is_ended_with_whoever_waited_too_long(tmp_path):
    calibrator = BackgroundCalibrator(a_subject(tmp_path, "hang"), time_limit_s=0.1)
    calibrator.submit(FIRST)

    with pytest.raises(ReferenceRunError, match=r"must end within 0\.1 s"):
        calibrator.collect()


def test_a_program_that_crashes_is_an_error_with_its_last_output(tmp_path):
    calibrator = BackgroundCalibrator(a_subject(tmp_path, "crash"))
    calibrator.submit(FIRST)
    try:
        with pytest.raises(ReferenceRunError, match="std::bad_alloc"):
            calibrator.collect()
    finally:
        calibrator.close()


def test_the_death_of_the_process_is_an_error():
    calibrator = BackgroundCalibrator(a_subject())
    calibrator.submit(FIRST)
    os.kill(calibrator.pid, signal.SIGKILL)

    with pytest.raises(ReferenceRunError, match="died with exit code -9"):
        calibrator.collect()


def test_the_process_ends_with_whoever_started_it():
    """Its output closes, so it is gone, though whoever started it was killed in the middle."""
    code = """
import os, signal, sys
sys.path[:0] = sys.argv[1:]
from test_calibration_loop import FIRST, BackgroundCalibrator, a_subject
calibrator = BackgroundCalibrator(a_subject(num_placements=100_000))
calibrator.submit(FIRST)
print(calibrator.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    here = Path(__file__).parent
    words = ["-c", code, str(here), str(here.parent)]
    with python(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        shown = process.stdout.readline()
        process.wait()

        assert process.returncode == -signal.SIGKILL
        assert wait_until(lambda: not is_running(int(shown)))
        assert process.stdout.read() == b""
