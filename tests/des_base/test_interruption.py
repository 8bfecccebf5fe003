"""Signals end a command in one line, however many come and whatever ends the terminal."""

import os
import pty
import signal
import subprocess

import pytest
from processes import WAIT_FOR_SIGNAL, python

from des.base.interruption import GRACE_S, INTERRUPTED

WAITING = """
import signal, threading, time
from des.base.command import exit_code_of
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where the tests run under nohup
def body():
    try:
        print("ready", flush=True)
        {wait}
    finally:
        {first}
        print("ending", flush=True)
        {cleanup}
raise SystemExit(exit_code_of(body))
"""
WAITING = WAITING.replace("{wait}", WAIT_FOR_SIGNAL)
TAKES_LONG = "threading.Event().wait(0.3)"


def ended_by(
    signals: list[signal.Signals], cleanup: str = "pass", first: str = "pass"
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that gets signals, all but the first at its end."""
    code = WAITING.format(cleanup=cleanup, first=first)
    with python("-c", code, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signals[0])
        assert process.stdout.readline() == "ending\n"
        for number in signals[1:]:
            process.send_signal(number)
        shown, errors = process.communicate()
    return process.returncode, shown, errors


def quick_end_of(code: str) -> tuple[int, str]:
    """Exit code and stderr of a program that ends by itself."""
    with python("-c", code, text=True, stderr=subprocess.PIPE) as process:
        errors = process.communicate()[1]
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_ends_a_command_as_ctrl_c_does(number):
    assert ended_by([number]) == (INTERRUPTED, "", "interrupted\n")


def test_six_quick_ctrl_c_are_one():
    assert ended_by([signal.SIGINT] * 6, TAKES_LONG) == (INTERRUPTED, "", "interrupted\n")


def test_other_signals_after_the_first_change_nothing():
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTERM]

    assert ended_by(numbers, TAKES_LONG) == (INTERRUPTED, "", "interrupted\n")


def test_one_that_comes_after_the_grace_ends_a_command_that_does_not_end():
    later = f"time.monotonic = lambda before=time.monotonic: before() + {GRACE_S}"
    signals = [signal.SIGINT, signal.SIGINT]

    assert ended_by(signals, WAIT_FOR_SIGNAL, later) == (-signal.SIGINT, "", "")


def test_a_signal_that_is_ignored_stays_so():
    """As under nohup."""
    code = """
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from des.base.command import exit_code_of
raise SystemExit(exit_code_of(lambda: os.kill(os.getpid(), signal.SIGHUP) or 0))
"""
    assert quick_end_of(code) == (0, "")


def test_a_terminal_that_is_closed_ends_a_command_without_a_traceback():
    """Its last line has no reader either."""
    control, terminal = pty.openpty()
    code = WAITING.format(first="pass", cleanup="pass")
    with python("-c", code, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE) as process:
        os.close(terminal)
        with open(control, "rb", buffering=0) as screen:  # a terminal may show half of a line
            assert screen.readline() == b"ready\r\n"
        process.send_signal(signal.SIGHUP)  # its leader would have got it from the terminal
        _, errors = process.communicate()

    assert b"Traceback" not in errors
    assert process.returncode in (INTERRUPTED, 141)


@pytest.mark.parametrize("then", ["raise RuntimeError('no compiled object yet')", WAIT_FOR_SIGNAL])
def test_a_signal_that_a_callback_swallows_ends_the_command_as_well(then):
    """As those of LLVM do while numba compiles: an error follows, or the command continues."""
    code = f"""
import ctypes, os, signal, threading
from des.base.command import exit_code_of
callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGTERM))
def body():
    callback()
    {then}
raise SystemExit(exit_code_of(body))
"""
    assert quick_end_of(code) == (INTERRUPTED, "interrupted\n")


def test_a_command_inside_of_another_one_is_interrupted_with_it():
    code = """
import os, signal
from des.base.command import exit_code_of
inner = lambda: exit_code_of(lambda: os.kill(os.getpid(), signal.SIGTERM) or 0)
raise SystemExit(exit_code_of(inner))
"""
    assert quick_end_of(code) == (INTERRUPTED, "interrupted\n")


def test_handlers_are_as_before_after_a_command_that_was_not_interrupted():
    code = """
import signal
from des.base.command import exit_code_of
before = signal.getsignal(signal.SIGTERM)
exit_code_of(lambda: 0)
raise SystemExit(signal.getsignal(signal.SIGTERM) != before)
"""
    assert quick_end_of(code) == (0, "")
