"""The lock of run folders: one process at a time, and no trace of processes that are dead."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scenarios import (
    compare,
    compare_seeds,
    east_west_train,
    kpi,
    link_shares,
    pareto,
    robustness,
    sweep,
)
from scenarios.ablations import __main__ as ablations
from scenarios.frame.run_folder import RunFolder
from scenarios.frame.run_lock import LOCK, RunFolderInUseError, lock_folder

HOLDER = """
import sys
from pathlib import Path
from scenarios.frame.run_lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
COMMANDS = [
    (ablations, ["--num-worlds", "1"]),
    (compare, ["--suite", "eval_static"]),
    (compare_seeds, ["--quick"]),
    (east_west_train, ["--quick", "--calibration", "none"]),
    (link_shares, ["--mixes", "1"]),
    (kpi, ["--short", "--method", "search_once"]),
    (pareto, ["--worlds", "1"]),
    (robustness, ["--num-worlds", "1"]),
    (sweep, ["--quick"]),
    (east_west_train, ["moves", "--updates", "1"]),
    (east_west_train, ["local", "--quick"]),
]


@contextmanager
def held_elsewhere(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until it hears a line or is killed."""
    words = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_folder_that_another_process_uses_is_refused_with_its_number(tmp_path):
    with (
        held_elsewhere(tmp_path) as other,
        pytest.raises(
            RunFolderInUseError,
            match=f"run folder {tmp_path}: must be used by one process at a time, "
            f"process {other.pid} is using it",
        ),
        lock_folder(tmp_path),
    ):
        pytest.fail("two hold the lock")


def test_a_folder_is_free_when_the_other_process_is_done(tmp_path):
    with held_elsewhere(tmp_path) as other:
        other.communicate("done\n")

        assert other.returncode == 0
        assert list(tmp_path.iterdir()) == []
        with lock_folder(tmp_path):
            pass


def test_a_process_that_was_killed_holds_nothing(tmp_path):
    with held_elsewhere(tmp_path) as other:
        other.kill()
        other.wait()

        assert (tmp_path / LOCK).read_text().startswith(f"{other.pid} ")
        with lock_folder(tmp_path):
            assert (tmp_path / LOCK).read_text().startswith(f"{os.getpid()} ")
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_stands_still_is_still_the_holder(tmp_path):
    with held_elsewhere(tmp_path) as other:
        other.send_signal(signal.SIGSTOP)

        with (
            pytest.raises(RunFolderInUseError, match=f"process {other.pid} "),
            lock_folder(tmp_path),
        ):
            pytest.fail("two hold the lock")


def test_the_lock_is_no_content_of_the_folder(tmp_path):
    """Of a killed process that had not yet begun, nor are files that it had not finished."""
    (tmp_path / LOCK).write_text("4194305 nowhere\n")
    (tmp_path / ".config.json.tmp").write_text('{"conf')

    with RunFolder.created(tmp_path) as folder:
        folder.write_config({"seed": 1})

    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_another_machine_that_holds_the_lock_is_named(tmp_path):
    """As on a disk that machines share: the number alone would be one of ours."""
    with held_elsewhere(tmp_path):
        (tmp_path / LOCK).write_text("17 far-away\n")

        with (
            pytest.raises(RunFolderInUseError, match="process 17 on far-away"),
            lock_folder(tmp_path),
        ):
            pytest.fail("two hold the lock")


@pytest.mark.parametrize(
    ("command", "flags"), COMMANDS, ids=[command.__name__ for command, _ in COMMANDS]
)
def test_every_command_with_a_run_folder_respects_the_lock(command, flags, tmp_path, capsys):
    with held_elsewhere(tmp_path) as other:
        assert command.main([*flags, "--out", str(tmp_path)]) == 2

    error = capsys.readouterr().err
    assert error == (
        f"error: run folder {tmp_path}: must be used by one process at a time, "
        f"process {other.pid} is using it\n"
    )
    assert [path.name for path in tmp_path.iterdir()] in ([], [LOCK])


@pytest.mark.parametrize(
    ("command", "task", "settings"),
    [
        (east_west_train, [], '{"policy": "hi_ppo"}'),
        (kpi, [], "{}"),
        (east_west_train, ["moves"], "{}"),
    ],
)
def test_a_run_that_is_under_way_cannot_be_resumed(command, task, settings, tmp_path, capsys):
    (tmp_path / "config.json").write_text(f'{{"config": {settings}}}')
    with held_elsewhere(tmp_path) as other:
        assert command.main([*task, "--resume", "--out", str(tmp_path)]) == 2

    assert f"process {other.pid} is using it" in capsys.readouterr().err
