"""Notes on stderr about work that takes long: named, timed, also in pipes; ``--quiet`` drops them.

A process that runs a command calls `listen_to` once. From then on each silence of 2 s, then of
10 s, 30 s and every further minute, ends with a line that says what the process does and since
when. Output of the command itself resets the silence.
"""

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

SILENCES_S = (2.0, 10.0, 30.0, 60.0)
"""Longest silences, one after the other; the last one is repeated. [s]"""

IMPORTED_S = time.monotonic()
"""Import time of this module; the start of a process that is a command. [s]"""


class Heard:
    """A stream that notes when it was last written to; all else is the stream's own."""

    def __init__(self, stream: IO[str], speaker: "Speaker") -> None:
        self._stream, self._speaker = stream, speaker

    def write(self, text: str) -> int:
        """Write to the stream."""
        self._speaker.heard()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Speaker:
    """Speaker of one process: what it does now, whether it may speak, and the silence so far."""

    def __init__(self, silences_s: tuple[float, ...] = SILENCES_S) -> None:
        self._silences_s = silences_s
        self.is_quiet = False
        self.is_listening = False
        self._is_resting = False
        self._doing = ("loading", time.monotonic())
        self._heard_s = time.monotonic()
        self._num_said = 0
        self._reached = ""

    def heard(self) -> None:
        """Note that the user has been told something."""
        self._heard_s, self._num_said = time.monotonic(), 0

    def say(self, line: str) -> None:
        """Write a line to stderr, unless it has to be quiet or there is no stderr."""
        if self.is_quiet or sys.stderr is None:
            return
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def note(self, lines: Iterable[str]) -> None:
        """Write notes on what was read, a line each, which change nothing."""
        for line in lines:
            self.say(f"note: {line}")

    @contextmanager
    def doing(self, what: str, *, is_said_first: bool = False) -> Iterator[None]:
        """Name the part of the work that is done inside; what is longer than 2 s is timed.

        Parameters
        ----------
        is_said_first
            Whether a terminal shows the name when the part begins.
        """
        before, began_s = (self._doing, self._reached), time.monotonic()
        self._doing, self._reached = (what, began_s), ""
        self.heard()
        if is_said_first:
            self._say_on_terminal(what)
        try:
            yield
        finally:
            self._doing, self._reached = before
            took_s = time.monotonic() - began_s
            if self.is_listening and took_s >= self._silences_s[0]:
                self.say(f"{what}: {took_s:.1f} s")

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Report no elapsed time inside, as for a service that waits for requests without end."""
        self._is_resting = True
        try:
            yield
        finally:
            self._is_resting = False
            self.heard()

    def reached(self, how_far: str) -> None:
        """Say how far the work is: on a terminal at once, in a pipe after the next silence."""
        self._reached = how_far
        self._say_on_terminal(how_far)

    def _say_on_terminal(self, line: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            self.say(line)

    def listen_to(self, what: str, since_s: float | None = None) -> None:
        """Report the work of this process, named ``what``, whenever it has been silent.

        Parameters
        ----------
        since_s
            Begin of the work and of its first silence; None: now. [s]
        """
        if self.is_listening or sys.stderr is None:
            return
        self.is_listening = True
        self.heard()
        if since_s is not None:
            self._heard_s = since_s
        self._doing = (what, self._heard_s)
        sys.stderr = Heard(sys.stderr, self)
        if sys.stdout is not None and sys.stdout.isatty():  # else the user does not see it
            sys.stdout = Heard(sys.stdout, self)
        threading.Thread(target=self._watch, name="speaker", daemon=True).start()

    def _watch(self) -> None:
        while True:
            most_s = self._silences_s[min(self._num_said, len(self._silences_s) - 1)]
            left_s = self._heard_s + most_s - time.monotonic()
            if left_s > 0:
                time.sleep(left_s)
                continue
            if self._is_resting:
                self._heard_s = time.monotonic()
                continue
            (what, since_s), said = self._doing, self._num_said
            how_far = self._reached and f", {self._reached}"
            self.say(f"{what}{how_far}: {time.monotonic() - since_s:.0f} s so far")
            self._heard_s, self._num_said = time.monotonic(), said + 1


SPEAKER = Speaker()
"""Speaker of this process."""
