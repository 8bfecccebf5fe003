"""Programs in ASTRA-sim's place that misbehave: an error that says how, and never a number."""

import os
import signal
import sys
import time

import pytest
from full_disk import files_of_at_most
from processes import FAILSAFE_S, is_running, wait_until, with_time_enough
from reference_programs import fake_programs, gpu_case, small_case

from calibration.measuring.measure import measure_all, measure_case
from calibration.reference.binaries import (
    MOST_OUTPUT_BYTES,
    Ended,
    ReferenceRunError,
    run_reference_program,
)
from calibration.reference.export import PROGRAMS
from calibration.reference.finish_lines import Finish, parse_finishes


def run(binaries, case=None, **options):
    return measure_case(
        case or small_case(),
        "unaware",
        binaries=binaries,
        **{"timeout_s": FAILSAFE_S, "num_attempts": 1, **options},
    )


@pytest.mark.parametrize(
    ("way", "reason", "exit_code", "last"),
    [
        ("crash", "got 0; the first one missing is that of rank 0", "-11 (Segm", "std::bad_alloc"),
        ("full-disk", "got 0; the first one missing", "1", "No space left on device"),
        ("garbage", "got 0; the first one missing", "0", "\ufffd"),
        ("silence", "got 0; the first one missing", "0", "(nothing)"),
        ("partial", "all 3 NPUs, got 2; the first one missing is that of rank 2", "0", "sys[1]"),
        ("torn", "got 2; the first one missing is that of rank 2", "0", "sys[2] finished, 5002 c"),
        ("duplicate", "must be one a rank, got several of rank 0", "0", "sys[2]"),
        ("contradiction", "must be one a rank, got several of rank 0", "0", "6000 cycles"),
        ("stranger", "rank must be below 3, got 3", "0", "sys[3]"),
        ("implausible", "rank 0 must have ", "0", "sys[2]"),
        ("no-time", "cycles must be from 1 to below 2**63", "0", "sys[2] finished, 0 cycles"),
        ("impossible", "at least those of exposed communication, got 5 and 6", "0", "sys[2]"),
        ("fail-late", "it failed after its finish lines", "3", "sys[2]"),
        ("crash-while-exiting", "it failed after its finish lines", "-6 (Abort", "Exiting"),
    ],
)
def test_a_program_that_misbehaves_is_an_error_with_its_last_output(
    way, reason, exit_code, last, tmp_path
):
    binaries = fake_programs(tmp_path / "bin", way)

    with pytest.raises(ReferenceRunError) as caught:
        run(binaries)

    message = str(caught.value)
    assert reason in message
    assert f"command: {binaries}/AstraSim_Analytical_Congestion_Unaware --work" in message
    assert f"\nexit code: {exit_code}" in message
    assert last in message[message.index("last output on stdout") :]


@pytest.mark.parametrize(("way", "num_lines"), [("hang", 2), ("linger", 3)])
def test_a_program_that_hangs_is_ended_with_all_that_it_started(way, num_lines, tmp_path):
    binaries = fake_programs(tmp_path / "bin", way)

    def message(limit_s: float) -> str:
        late = rf"it did not end within {limit_s:g} s\n"
        with pytest.raises(ReferenceRunError, match=late) as caught:
            run(binaries, timeout_s=limit_s)
        return str(caught.value)

    said = with_time_enough(message, lambda said: said.count("finished,") == num_lines)

    assert said.count("finished,") == num_lines
    assert "exit code: -9" in said


def test_no_child_of_a_program_survives_it(tmp_path):
    """The number of the child is what the program prints; its pipe is open as long as it lives."""
    code = (
        "import os, subprocess, sys, threading;"
        "print(subprocess.Popen([sys.executable, '-c', 'import threading;"
        " threading.Event().wait()']).pid, flush=True); threading.Event().wait()"
    )

    def ended_after(limit_s: float) -> Ended:
        ended = run_reference_program([sys.executable, "-c", code], tmp_path, timeout_s=limit_s)
        assert ended.stopped == f"it did not end within {limit_s:g} s"
        return ended

    ended = with_time_enough(ended_after, lambda ended: ended.stdout != "")

    assert wait_until(lambda: not is_running(int(ended.stdout)))


def test_what_a_program_leaves_behind_is_ended_with_it(tmp_path, monkeypatch):
    """It ends well, and its child holds none of its output."""
    left = tmp_path / "left"
    monkeypatch.setenv("LEFT_BEHIND", str(left))

    found = run(fake_programs(tmp_path / "bin", "leave-behind"))

    assert found == measure_case(small_case(), "unaware")
    assert wait_until(lambda: not is_running(int(left.read_text())))


def test_a_program_that_babbles_is_ended(tmp_path):
    binaries = fake_programs(tmp_path / "bin", "babble")

    with pytest.raises(ReferenceRunError, match=f"it printed more than {MOST_OUTPUT_BYTES} bytes"):
        run(binaries)


def test_a_crash_is_tried_again(tmp_path):
    binaries = fake_programs(tmp_path / "bin", "crash-once")

    assert run(binaries, num_attempts=2) == measure_case(small_case(), "unaware")
    with pytest.raises(ReferenceRunError, match="exit code: -11"):
        run(binaries, num_attempts=1)


def test_attempts_come_to_an_end(tmp_path):
    binaries = fake_programs(tmp_path / "bin", "crash")

    with pytest.raises(ReferenceRunError, match=r"^3 attempts gave no result; the last: finish li"):
        run(binaries, num_attempts=3)


def test_the_documented_crash_while_exiting_is_accepted_where_it_is_documented(tmp_path):
    """GPUs in groups for tensor and for data parallelism, both small."""
    binaries = fake_programs(tmp_path / "bin", "crash-while-exiting")

    measured = run(binaries, gpu_case())

    assert measured == measure_case(gpu_case(), "unaware")


def test_programs_that_cannot_be_started_are_named(tmp_path):
    binaries = fake_programs(tmp_path / "bin")
    program = binaries / PROGRAMS["unaware"]
    with pytest.raises(ReferenceRunError, match=r"nowhere/AstraSim.*: must be a program, got no "):
        run(tmp_path / "nowhere")
    program.write_bytes(b"\x00\x01\x02")
    with pytest.raises(ReferenceRunError, match="cannot be started: Exec format error"):
        run(binaries)
    program.chmod(0o644)
    with pytest.raises(ReferenceRunError, match="must be executable, got a file that is not"):
        run(binaries)
    with pytest.raises(ReferenceRunError, match="must be executable, got a file that is not"):
        measure_all([small_case()], "unaware", num_workers=1, binaries=binaries)


def test_a_full_disk_on_our_side_is_an_error(tmp_path):
    """Files of at most 100 bytes: traces do not fit."""
    binaries, case = fake_programs(tmp_path / "bin"), small_case()
    measure_case(case, "unaware", binaries=binaries)

    message = "folder .*: inputs cannot be written: File too large"
    with files_of_at_most(100), pytest.raises(ReferenceRunError, match=message):
        measure_case(case, "unaware", binaries=binaries)


def test_finish_lines_are_found_among_others_in_any_order():
    text = (
        "[2026] [workload] [info] sys[1] finished, 7 cycles, exposed communication 7 cycles.\n"
        "[2026] [statistics] [info] sys[1], Wall time: 9\n"
        "noise sys[0] finished, 43000 cycles, exposed communication 12 cycles. noise"
    )

    assert parse_finishes(text, 2) == (
        Finish(cycles=43000, exposed_cycles=12),
        Finish(cycles=7, exposed_cycles=7),
    )


@pytest.mark.parametrize(
    "text",
    [
        "sys[0] finished, 9223372036854775808 cycles, exposed communication 1 cycles",
        "sys[0] finished, 5 cycles, exposed communication 18446744073709551615 cycles",
        f"sys[0] finished, {'9' * 5000} cycles, exposed communication 1 cycles",
        "sys[\u0660] finished, 5 cycles, exposed communication 1 cycles",
        "sys[0] finished, -5 cycles, exposed communication 1 cycles",
    ],
)
def test_numbers_that_no_run_has_are_refused(text):
    with pytest.raises(ValueError, match=r"finish|integer string"):
        parse_finishes(text, 1)


def test_a_program_has_no_more_time_than_it_is_given(tmp_path):
    begun_s = time.monotonic()

    ended = run_reference_program(["sleep", "600"], tmp_path, timeout_s=0.2)

    assert ended.stopped == "it did not end within 0.2 s"
    assert ended.exit_code == -signal.SIGKILL  # so it has not slept to its end
    assert time.monotonic() - begun_s >= 0.2
    assert os.listdir(tmp_path) == []
