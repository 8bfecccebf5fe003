"""External programs, run to their end or not at all: a time limit, their output, clear errors."""

import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from des.base.parent_process import be_killed_with

MOST_OUTPUT_BYTES = 2**26
"""A program that prints more babbles; 1000 NPUs print less than a MiB."""

_READ_BYTES = 2**16
_POLL_S = 0.002
_SHOWN_LINES = 20
_SHOWN_CHARACTERS = 2000


class ReferenceRunError(RuntimeError):
    """A reference simulator that gave no result; the message says what it did instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Outcome of a program.

    ``exit_code`` is negative for the number of a signal; ``stopped`` says why we ended the program,
    None if it did so by itself.
    """

    command: str
    exit_code: int
    stopped: str | None
    stdout: str
    stderr: str

    def failed(self, reason: str) -> ReferenceRunError:
        """Make the error of this run: the reason, the command, the exit code, the last output."""
        exit_code = str(self.exit_code)
        if self.exit_code < 0:
            exit_code = f"{exit_code} ({signal.strsignal(-self.exit_code)})"
        last = "".join(
            f"\nlast output on {name}:\n{_last_lines(text)}"
            for name, text in (("stdout", self.stdout), ("stderr", self.stderr))
        )
        return ReferenceRunError(f"{reason}\ncommand: {self.command}\nexit code: {exit_code}{last}")


def run_reference_program(words: Sequence[str], folder: Path, *, timeout_s: float) -> Ended:
    """Run a program in a folder until it has ended and closed its output.

    What it has started is killed when it ends, unless that has made a session of its own. All of
    it is killed if that takes too long, it prints too much, or we are interrupted; on Linux the
    program itself also if we are killed.

    Raises
    ------
    ReferenceRunError
        If it cannot be started.
    """
    command = shlex.join(words)
    deadline_s = time.monotonic() + timeout_s
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=partial(be_killed_with, os.getpid()),  # noqa: PLW1509 - one system call
        )
    except OSError as error:
        raise ReferenceRunError(
            f"{words[0]}: cannot be started: {error.strerror}\ncommand: {command}"
        ) from error
    assert process.stdout is not None
    assert process.stderr is not None
    received: dict[IO[bytes], bytearray] = {
        process.stdout: bytearray(),
        process.stderr: bytearray(),
    }
    with process.stdout, process.stderr:
        try:
            stopped = _follow(process, received, deadline_s, timeout_s)
        finally:  # the program has ended or not; its group keeps its number until it is reaped
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    stdout, stderr = (output.decode(errors="replace") for output in received.values())
    return Ended(
        command=command,
        exit_code=process.returncode,
        stopped=stopped,
        stdout=stdout,
        stderr=stderr,
    )


def _follow(
    process: subprocess.Popen[bytes],
    received: dict[IO[bytes], bytearray],
    deadline_s: float,
    timeout_s: float,
) -> str | None:
    """Read all output and wait for the end; returns why that has to be cut short, if it has."""
    too_late = f"it did not end within {timeout_s:g} s"
    with selectors.DefaultSelector() as selector:
        for stream, content in received.items():
            selector.register(stream, selectors.EVENT_READ, content)
        while selector.get_map():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return too_late
            for key, _ in selector.select(left_s):
                part = os.read(key.fd, _READ_BYTES)
                key.data.extend(part)
                if not part:
                    selector.unregister(key.fileobj)
            if sum(map(len, received.values())) > MOST_OUTPUT_BYTES:
                return f"it printed more than {MOST_OUTPUT_BYTES} bytes"
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline_s:
            return too_late
        time.sleep(_POLL_S)
    return None


def _last_lines(text: str) -> str:
    lines = "\n".join(text.splitlines()[-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:]
    shown = (each if each.isprintable() or each in "\n\t" else "\ufffd" for each in lines)
    return "".join(shown) or "(nothing)"
