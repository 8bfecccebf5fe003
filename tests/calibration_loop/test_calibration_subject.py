"""Calibrations of a subject, here and in a process of their own."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from processes import is_running, python, wait_until
from reference_programs import fake_programs

from calibration import ReferenceRunError, WorkloadFamily
from calibration.loop import BackgroundCalibrator, Order, Subject, calibrate
from calibration.runs.store import Store
from des import NO_CORRECTIONS, Corrections, Placement, Transport, build_workload, read_topology
from des.worlds import EAST_CENTRAL_WEST

HALF = Corrections(wan_bandwidth_factor=0.5)


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
    assert right.before.mean < 1e-6
    assert wrong.before.mean > 0.01
    assert wrong.after.mean < 1e-6


def test_placements_that_no_factor_touches_do_not_hide_that_factors_are_wrong():
    """Half of ten gain nothing: the mean gain is one standard deviation, three standard errors."""
    order = replace(FIRST, in_force=HALF, choices=CHOICES[1:])

    assert calibrate(a_subject(), order).corrections == NO_CORRECTIONS


def test_a_network_of_half_the_bandwidth_is_found_out_by_its_program(tmp_path):
    """The program is a process that runs on half the bandwidth that it is told."""
    store = tmp_path / "runs.sqlite"
    subject = a_subject(tmp_path, "congested", num_placements=16, store=store)

    first = calibrate(subject, FIRST)

    assert first.before.mean > 0.01
    assert first.after.mean < first.before.mean / 20
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


def test_the_background_finds_what_is_found_here_and_ends_in_silence(capfd):
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
    assert capfd.readouterr() == ("", "")


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


def test_a_program_that_hangs_is_ended_with_the_caller_that_waited_too_long(tmp_path):
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


def test_the_process_ends_with_its_parent():
    """Its output closes, so it is gone, though its parent was killed in the middle."""
    code = """
import os, signal, sys
sys.path[:0] = sys.argv[1:]
from test_calibration_subject import FIRST, BackgroundCalibrator, a_subject
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
