"""Long commands, small: begun, killed at any moment, and continued by the next call."""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from processes import is_running, python, wait_until
from training_runs import assert_same_results

ORPHANS_LIMIT_S = 10.0
"""After which nothing of a killed command may run. [s]"""

_MARK = "EASTWEST_KILLED_RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command with a folder for results; the same call, or its resuming one, continues."""

    module: str
    flags: tuple[str, ...]
    resumes: bool
    assert_same: Callable[[Path, Path], None]

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


def _same_sweep(one: Path, other: Path) -> None:
    for seed in ("seed0", "seed1"):
        assert_same_results(one / seed, other / seed)


_FLAT = ("--quick", "--config", "BASE", "--workers", "1")
BASE = "{steps: 2048, evaluation_draws: 2, calibration: none}"
"""Settings of trainings: 16 updates; checkpoints of the 10th and the last."""

_SMALL = ("--num-layers", "8", "--microbatches", "4,8", "--workers", "2", "--store", "OUT.sqlite")
COMMANDS = {
    "training": Command(
        module="scenarios.east_west_train",
        flags=("--policy", "flat", *_FLAT, "--no-kpi"),
        resumes=True,
        assert_same=assert_same_results,
    ),
    "hi_ppo": Command(
        module="scenarios.east_west_train",
        flags=(
            *("moves", "--seed", "7", "--updates", "12", "--worlds", "2", "--samples", "2"),
            *("--rounds", "1"),
            *("--move-worlds", "1", "--move-draws", "1", "--move-updates", "12", "--workers", "2"),
        ),
        resumes=True,
        assert_same=_same_files(
            "placement.csv", "placement.safetensors", "moves.csv", "hi_ppo.safetensors"
        ),
    ),
    "sweep": Command(
        module="scenarios.sweep",
        flags=("--quick", "--base", "BASE", "--seeds", "0,1", "--processes", "2"),
        resumes=False,
        assert_same=_same_sweep,
    ),
    "calibration": Command(
        module="calibration",
        flags=("run", *_SMALL, "--samples", "24"),
        resumes=False,
        assert_same=_same_files("corrections.json", "samples.csv", "report.md"),
    ),
    "kpi": Command(
        module="scenarios.kpi",
        flags=(
            *("--short", "--num-epochs", "1", "--world", "east_central_west"),
            *("--method", "search_once,search_h1", "--targets", "communication"),
        ),
        resumes=True,
        assert_same=_same_files("kpi.csv"),
    ),
    "compare": Command(
        module="scenarios.compare",
        flags=(
            *("--suite", "eval_static", "--num-worlds", "2", "--num-draws", "2"),
            *("--num-domains", "4", "--planners", "search,uniform,single_domain", "--workers", "2"),
        ),
        resumes=False,
        assert_same=_same_files("static.csv", "static_summary.csv"),
    ),
}


def run_whole(command: Command, out: Path) -> float:
    """Run a command to its end; returns how long that took. [s]"""
    started_s = time.monotonic()
    words = ["-m", command.module, *command.arguments(out)]
    with python(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    return time.monotonic() - started_s


def kill_after(command: Command, out: Path, wait_s: float, *, group: bool) -> float | None:
    """Kill a command after a time, alone or with its group.

    Returns
    -------
    float or None
        Time until nothing of it ran any more; None if it had ended by itself. [s]
    """
    mark = uuid.uuid4().hex
    words = ["-m", command.module, *command.arguments(out)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with python(*words, env={_MARK: mark}, **streams) as process:
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            killed_s = time.monotonic()
            (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
        else:
            assert process.returncode == 0
            return None
        wait_until(lambda: not any(map(is_running, marked(mark))))
    return time.monotonic() - killed_s


def marked(mark: str) -> list[int]:
    """Numbers of processes that were started by one, in whatever session they are."""
    wanted, found = f"{_MARK}={mark}".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if wanted in words:
                found.append(int(entry.name))
    return found
