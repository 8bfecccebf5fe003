"""Notes on silent work: named, timed, held back by ``--quiet``."""

import io
import sys
import threading
import time

import pytest
from parsed_flags import parsed

from des.base.speaking import Heard, Speaker


class Lines(io.StringIO):
    """A stream that tells when a text has been written to it."""

    def __init__(self, text):
        super().__init__()
        self.text, self.has_come = text, threading.Event()

    def write(self, text):
        super().write(text)
        if self.text in self.getvalue():
            self.has_come.set()
        return len(text)


@pytest.fixture
def speaker(monkeypatch):
    """A speaker of a process without patience, whose stderr is put back afterwards."""
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    speaker = Speaker(silences_s=(0.01, 0.02, 3600.0))
    yield speaker
    speaker.is_quiet = True


def test_a_silence_is_named_with_how_far_the_work_is(speaker, monkeypatch):
    lines = Lines("fitting, 3 of 5: 0 s so far\n")
    monkeypatch.setattr(sys, "stderr", lines)
    speaker.listen_to("demo")
    with speaker.doing("fitting"):
        speaker.reached("3 of 5")

        assert lines.has_come.wait(60.0)


def test_the_first_silence_begins_with_the_process(speaker, monkeypatch):
    lines = Lines("demo: 100 s so far\n")
    monkeypatch.setattr(sys, "stderr", lines)
    speaker.listen_to("demo", time.monotonic() - 100.0)

    assert lines.has_come.wait(60.0)


def test_a_service_that_waits_is_not_timed(speaker, monkeypatch):
    lines = Lines("serving: 0 s so far\n")
    monkeypatch.setattr(sys, "stderr", lines)
    with speaker.resting():
        speaker.listen_to("serving")
        threading.Event().wait(0.05)  # five silences
        assert lines.getvalue() == ""

    assert lines.has_come.wait(60.0)


def test_a_part_that_takes_long_is_timed_at_its_end(speaker, monkeypatch):
    lines = Lines("loading: 0.0 s\n")
    monkeypatch.setattr(sys, "stderr", lines)
    speaker.listen_to("demo")
    with speaker.doing("loading"):
        threading.Event().wait(0.01)  # the least that is long

    assert lines.has_come.wait(60.0)


def test_a_quiet_process_says_nothing_and_output_ends_a_silence(speaker, monkeypatch):
    lines = Lines("never")
    monkeypatch.setattr(sys, "stderr", lines)
    speaker.is_quiet = True
    speaker.say("a note")
    with speaker.doing("fitting"):
        pass

    assert lines.getvalue() == ""
    assert Heard(lines, speaker).write("x") == 1
    assert Heard(lines, speaker).getvalue() == "x"


def test_version_and_flags_for_shells_are_printed_by_every_command(capsys):
    for argument, begin in (("--version", "eastwest "), ("--print-flags", "--world\t")):
        with pytest.raises(SystemExit, match=r"^0$"):
            parsed(argument)
        assert capsys.readouterr().out.startswith(begin)
