"""Commands that are interrupted, or whose reader went away, end as shells expect."""

import os
import signal
import subprocess

import pytest
from processes import WAIT_FOR_SIGNAL, python

from des.base.command import READER_GONE, exit_code_of
from des.base.interruption import INTERRUPTED
from scenarios.suites.make_topology import main as make_topology


def ended_without_reader(body, *, unbuffered=False):
    """Exit code and stderr of a command whose stdout has no reader."""
    reading, writing = os.pipe()
    os.close(reading)
    code = f"{body}\nraise SystemExit(main())"
    environment = {"PYTHONUNBUFFERED": "1" if unbuffered else ""}
    streams = {"stdout": writing, "stderr": subprocess.PIPE}
    with python("-c", code, env=environment, text=True, **streams) as process:
        os.close(writing)
        _, errors = process.communicate()
    return process.returncode, errors


def test_ctrl_c_is_one_line_and_exit_code_130(capsys):
    def body():
        raise KeyboardInterrupt

    assert exit_code_of(body) == INTERRUPTED == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_ctrl_c_ends_a_process_without_a_traceback():
    code = f"""
import threading
from des.base.command import exit_code_of
def body():
    print("ready", flush=True)
    {WAIT_FOR_SIGNAL}
raise SystemExit(exit_code_of(body))
"""
    with python("-c", code, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()

    assert (process.returncode, errors) == (INTERRUPTED, "interrupted\n")


OUTPUTS = {
    "little, flushed at the end": "lambda: print('a line') and None",
    "more than a pipe's buffer holds": "lambda: print('a line\\n' * 100_000) and None",
    "a console of rich": "lambda: Console().print('a line')",
    "a verdict of its own": "lambda: print('FAILED') or 1",
}


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("body", OUTPUTS.values(), ids=OUTPUTS)
def test_a_reader_that_went_away_is_exit_code_141_and_silence(body, unbuffered):
    code = (
        "from rich.console import Console\n"
        "from des.base.command import exit_code_of\n"
        f"main = lambda: exit_code_of({body})"
    )

    assert ended_without_reader(code, unbuffered=unbuffered) == (READER_GONE, "")


@pytest.mark.parametrize("arguments", [["--help"], ["--preset", "aws_like", "--out"]])
def test_a_command_whose_reader_went_away_is_silent(arguments, tmp_path):
    if arguments[-1] == "--out":
        arguments = [*arguments, str(tmp_path / "world.yaml")]
    code = f"from scenarios.make_topology import main as run\nmain = lambda: run({arguments!r})"

    assert ended_without_reader(code) == (READER_GONE, "")
    assert (tmp_path / "world.yaml").exists() == ("--out" in arguments)


def test_a_pipe_that_breaks_inside_of_a_command_is_an_error(capsys):
    """It says nothing of who reads the output."""

    def body():
        raise BrokenPipeError(32, "Broken pipe")

    assert exit_code_of(body) == 2
    assert capsys.readouterr().err == "error: [Errno 32] Broken pipe\n"


def test_help_of_a_command_that_is_read_ends_as_usual(capsys):
    with pytest.raises(SystemExit) as end:
        make_topology(["--help"])

    assert end.value.code == 0
    assert "130 interrupted; 141 the reader" in " ".join(capsys.readouterr().out.split())
