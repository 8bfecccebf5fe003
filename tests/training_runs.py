"""Run folders of the main command: compared, copied, and left by an interrupted process."""

import os
import shutil
import signal
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
from forked import forked
from processes import is_running, wait_until

from calibration.loop import WALL_CLOCK_COLUMNS as WAITS
from scenarios.frame.metrics_log import WALL_CLOCK_COLUMNS, read_metrics
from scenarios.train.east_west.command import main

REPEATED_FILES = ("config.json", "network.yaml", "checkpoint.safetensors", "trace.json")


def calibrations(folder: Path) -> pd.DataFrame:
    """The calibrations of a run without what the clock says."""
    return pd.read_csv(folder / "calibrations.csv").drop(columns=list(WAITS))


def judged(folder: Path) -> pd.DataFrame:
    """The evaluation of a run without what the clock says, as text."""
    return pd.read_csv(folder / "evaluation.csv", dtype=str).drop(columns="decision_time_s")


def assert_same_results(one: Path, other: Path) -> None:
    """All files are equal byte for byte, wall-clock columns aside."""
    curves = [path.name for run in (one, other) for path in run.glob("learning_curve.*")]
    for name in (*REPEATED_FILES, *curves):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    columns = list(WALL_CLOCK_COLUMNS)
    metrics = [read_metrics(run / "metrics.csv").drop(columns=columns) for run in (one, other)]
    pd.testing.assert_frame_equal(*metrics, check_exact=True)
    pd.testing.assert_frame_equal(judged(one), judged(other))
    assert (one / "calibrations.csv").exists() == (other / "calibrations.csv").exists()
    if (one / "calibrations.csv").exists():
        pd.testing.assert_frame_equal(calibrations(one), calibrations(other))


def copy_of_run(run: Path, folder: Path) -> Path:
    """A run before its evaluation, in a new folder, that may be damaged."""
    folder.mkdir()
    for name in (
        "config.json",
        "network.yaml",
        "metrics.csv",
        "checkpoint.safetensors",
        "calibrations.csv",
    ):
        if (run / name).exists():
            shutil.copyfile(run / name, folder / name)
    return folder


def interrupted(flags: list[str], folder: Path) -> tuple[int, str]:
    """Train in a copy of this process that hears Ctrl-C after three updates; code and output."""
    metrics, shown = folder / "metrics.csv", folder.with_suffix(".out")

    def train() -> int:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with shown.open("w") as file, redirect_stdout(file):
            return main([*flags, "--out", str(folder)])

    number = forked(train, folder.parent, folder.with_suffix(".err"))
    wait_until(
        lambda: not is_running(number) or (metrics.exists() and metrics.read_text().count("\n") > 3)
    )
    os.kill(number, signal.SIGINT)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), shown.read_text()
