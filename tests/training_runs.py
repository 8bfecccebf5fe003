"""Run folders of the main command: compared, copied, and left by an interrupted process."""

import shutil
import signal
import subprocess
from pathlib import Path

import pandas as pd
from processes import python, wait_until

from calibration.loop import WALL_CLOCK_COLUMNS as WAITS
from scenarios.frame.metrics_log import WALL_CLOCK_COLUMNS, read_metrics

REPEATED_FILES = (
    "config.json",
    "network.yaml",
    "checkpoint.safetensors",
    "trace.json",
    "learning_curve.png",
)


def calibrations(folder: Path) -> pd.DataFrame:
    """The calibrations of a run without what the clock says."""
    return pd.read_csv(folder / "calibrations.csv").drop(columns=list(WAITS))


def judged(folder: Path) -> pd.DataFrame:
    """The evaluation of a run without what the clock says, as text."""
    return pd.read_csv(folder / "evaluation.csv", dtype=str).drop(columns="decision_time_s")


def assert_same_results(one: Path, other: Path) -> None:
    """All files are equal byte for byte, wall-clock columns aside."""
    for name in REPEATED_FILES:
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
    """Train as a user would who presses Ctrl-C after three updates; exit code and output."""
    words = ["-m", "scenarios.east_west_train", *flags, "--out", str(folder)]
    metrics = folder / "metrics.csv"
    with python(*words, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 3, process)
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate()
        return process.returncode, shown
