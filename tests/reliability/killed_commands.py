"""Long commands, small: begun, killed at any moment, and continued by the next call."""

import io
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from forked import forked, running_descendants
from processes import wait_until
from training_runs import assert_same_results

from scenarios.entry.command import main

ORPHANS_LIMIT_S = 10.0
"""After which nothing of a killed command may run. [s]"""

_TICK = threading.Event()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command with a folder for results; the same call, or its resuming one, continues."""

    name: str
    flags: tuple[str, ...]
    resumes: bool
    assert_same: Callable[[Path, Path], None]
    codes: tuple[int, ...] = (0,)

    def arguments(self, out: Path) -> list[str]:
        """Flags that begin in a folder, or continue there."""
        begun = (out / "config.json").exists()
        words = [word.replace("OUT", str(out)) for word in self.flags]
        return [*words, *(["--resume"] if self.resumes and begun else []), "--out", str(out)]


def _same_files(*names: str) -> Callable[[Path, Path], None]:
    def assert_same(one: Path, other: Path) -> None:
        for name in names:
            assert (one / name).read_bytes() == (other / name).read_bytes(), name

    return assert_same


def _same_rehearsal(one: Path, other: Path) -> None:
    """Equal predictions and launches, and a measurement of each plan."""
    paths = [path.relative_to(one) for path in sorted(one.rglob("*")) if path.is_file()]
    assert paths == [path.relative_to(other) for path in sorted(other.rglob("*")) if path.is_file()]
    for path in paths:
        if path.parts[0] in ("predictions.json", "launches"):
            assert (one / path).read_bytes() == (other / path).read_bytes(), path
    assert not list(other.parent.glob(f".{other.name}.*"))


def _same_sweep(one: Path, other: Path) -> None:
    for seed in ("seed0", "seed1"):
        assert_same_results(one / seed, other / seed)


_FLAT = ("--quick", "--config", "BASE", "--workers", "1")
BASE = "{steps: 2048, evaluation_draws: 2, calibration: none}"
"""Settings of trainings: 16 updates; checkpoints of the 10th and the last."""

_SMALL = (
    "--num-layers",
    "8",
    "--microbatches",
    "4,8",
    "--workers",
    "WORKERS",
    "--store",
    "OUT.sqlite",
)
COMMANDS = {
    "training": Command(
        name="train",
        flags=("--policy", "flat", *_FLAT, "--no-kpi"),
        resumes=True,
        assert_same=assert_same_results,
    ),
    "hi_ppo": Command(
        name="train",
        flags=(
            *("moves", "--seed", "7", "--updates", "12", "--worlds", "2", "--samples", "2"),
            *("--rounds", "1"),
            *(
                "--move-worlds",
                "1",
                "--move-draws",
                "1",
                "--move-updates",
                "12",
                "--workers",
                "WORKERS",
            ),
        ),
        resumes=True,
        assert_same=_same_files(
            "placement.csv", "placement.safetensors", "moves.csv", "hi_ppo.safetensors"
        ),
    ),
    "rehearse": Command(
        name="rehearse",
        flags=(
            *("--planners", "dtfm", "--worlds", "1", "--iterations", "1", "--seconds", "0.2"),
            *("--link-gbit", "5"),
        ),
        resumes=False,
        assert_same=_same_rehearsal,
        codes=(0, 1),  # a target is missed in so short a time
    ),
    "sweep": Command(
        name="sweep",
        flags=("--quick", "--base", "BASE", "--seeds", "0,1", "--processes", "2"),
        resumes=False,
        assert_same=_same_sweep,
    ),
    "calibration": Command(
        name="calibrate",
        flags=("run", *_SMALL, "--samples", "24"),
        resumes=False,
        assert_same=_same_files("corrections.json", "samples.csv", "report.md"),
    ),
    "kpi": Command(
        name="kpi",
        flags=(
            *("--short", "--num-epochs", "1", "--world", "east_central_west"),
            *("--method", "search_once,search_h1", "--targets", "communication"),
        ),
        resumes=True,
        assert_same=_same_files("kpi.csv"),
    ),
    "compare": Command(
        name="compare",
        flags=(
            *("--suite", "eval_static", "--num-worlds", "2", "--num-draws", "2"),
            *("--num-domains", "4", "--planners", "search,uniform,single_domain", "--workers", "2"),
        ),
        resumes=False,
        assert_same=_same_files("static.csv", "static_summary.csv"),
    ),
}


def load(command: Command, out: Path) -> None:
    """Run a command in this process: copies of it have its modules and its compiled code."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert main([command.name, *command.arguments(out)]) in command.codes


def run_whole(command: Command, out: Path) -> float:
    """Run a command to its end; returns how long that took. [s]"""
    started_s = time.monotonic()
    number, errors = _begun(command, out)
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    assert code in command.codes, errors.read_text("utf-8")
    return time.monotonic() - started_s


def kill_after(command: Command, out: Path, wait_s: float, *, group: bool) -> float | None:
    """Kill a command after a time, alone or with its group.

    Returns
    -------
    float or None
        Time until nothing of it ran any more; None if it had ended by itself. [s]
    """
    before = running_descendants()
    number, errors = _begun(command, out)
    ends_s, code = time.monotonic() + wait_s, None
    while code is None and time.monotonic() < ends_s:
        code = _code_of(number)
        _TICK.wait(0.005)
    if code is not None:
        assert code in command.codes, errors.read_text("utf-8")
        return None
    killed_s = time.monotonic()
    (os.killpg if group else os.kill)(number, signal.SIGKILL)
    os.waitpid(number, 0)
    wait_until(lambda: running_descendants() <= before)
    return time.monotonic() - killed_s


def _begun(command: Command, out: Path) -> tuple[int, Path]:
    """Number of a copy of this process that runs a command, and the file of its errors."""
    words, errors = [command.name, *command.arguments(out)], out.with_suffix(".err")
    return forked(lambda: main(words), out.parent, errors), errors


def _code_of(number: int) -> int | None:
    """Exit code of a process; None as long as it runs."""
    ended, status = os.waitpid(number, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None
