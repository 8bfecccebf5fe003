"""The training log: floats to the last bit, resuming leaves no trace, TensorBoard agrees."""

import math
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from scenarios.frame.metrics_log import (
    COUNTERS,
    LEARNING_COLUMNS,
    WALL_CLOCK_COLUMNS,
    MetricsLog,
    read_metrics,
)

COLUMNS = (*COUNTERS, *LEARNING_COLUMNS, *WALL_CLOCK_COLUMNS)
STEPS_PER_UPDATE = 64


def opened(folder: Path) -> MetricsLog:
    folder.mkdir(exist_ok=True)
    return MetricsLog(csv_path=folder / "metrics.csv", tensorboard_dir=folder / "tensorboard")


def row(update: int, **changes: float) -> dict[str, float]:
    """An update whose learning numbers depend on it alone, as a repeated run's would."""
    learning = {name: math.sin(update + place) for place, name in enumerate(LEARNING_COLUMNS)}
    counters = {"step": STEPS_PER_UPDATE * update, "update": update}
    return counters | learning | {"wall_s": 0.5 * update, "steps_per_s": 128.0} | changes


def log_updates(log: MetricsLog, first: int, last: int) -> None:
    for update in range(first, last + 1):
        log.append(row(update))


def test_the_header_is_written_once_and_a_row_is_on_disk_at_once(tmp_path):
    """Compared with the text, while the log is still open."""
    columns = ("loss",)
    with MetricsLog(
        csv_path=tmp_path / "a.csv",
        tensorboard_dir=tmp_path / "tensorboard",
        learning_columns=columns,
        wall_clock_columns=("wall_s",),
    ) as log:
        log.append({"wall_s": 1.5, "loss": 0.1, "update": 1, "step": 64})
        assert (tmp_path / "a.csv").read_text() == "step,update,loss,wall_s\n64,1,0.1,1.5\n"
        log.append({"wall_s": 2, "loss": np.float32(0.5), "update": np.int64(2), "step": 128})
        assert (tmp_path / "a.csv").read_text().splitlines()[2] == "128,2,0.5,2"


@given(
    values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=4),
    step=st.integers(1, 2**60),
)
def test_floats_are_read_to_the_last_bit(tmp_path_factory, values, step):
    """The bits are compared, so the zeros' signs count."""
    folder = tmp_path_factory.mktemp("log")
    with opened(folder) as log:
        for place, value in enumerate(values):
            log.append(row(place + 1, step=step + place, policy_loss=value))

    metrics = read_metrics(folder / "metrics.csv")

    assert [struct.pack("d", value) for value in metrics["policy_loss"]] == [
        struct.pack("d", value) for value in values
    ]
    assert list(metrics["step"]) == [step + place for place in range(len(values))]


def test_a_missing_number_is_read_as_missing(tmp_path):
    """An explained variance can be undefined."""
    with opened(tmp_path) as log:
        log.append(row(1, explained_variance=math.nan))

    assert math.isnan(read_metrics(tmp_path / "metrics.csv")["explained_variance"][0])


def test_a_log_without_rows_is_an_empty_table_with_its_columns(tmp_path):
    """A run interrupted before its first update can still be read."""
    opened(tmp_path).close()

    metrics = read_metrics(tmp_path / "metrics.csv")
    assert (len(metrics), tuple(metrics.columns)) == (0, COLUMNS)


@pytest.mark.parametrize("checkpoint", [0, 1, 3, 5])
@pytest.mark.parametrize("torn", ["", "384,6,0.12"])
def test_an_interrupted_run_leaves_the_same_csv_as_an_uninterrupted_one(tmp_path, checkpoint, torn):
    """Byte for byte, wherever the checkpoint was and even if the last row was cut short."""
    with opened(tmp_path / "whole") as log:
        log_updates(log, 1, 8)
    with opened(tmp_path / "parts") as log:
        log_updates(log, 1, 5)
    with (tmp_path / "parts" / "metrics.csv").open("a") as file:
        file.write(torn)

    with opened(tmp_path / "parts") as log:
        log.resume_from(STEPS_PER_UPDATE * checkpoint)
        log_updates(log, checkpoint + 1, 8)

    expected = (tmp_path / "whole" / "metrics.csv").read_bytes()
    assert (tmp_path / "parts" / "metrics.csv").read_bytes() == expected
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == [
        "metrics.csv",
        "tensorboard",
    ]


def test_a_row_after_a_torn_one_starts_its_own_line(tmp_path):
    """Opening the log removes what an interruption cut short."""
    with opened(tmp_path) as log:
        log.append(row(1))
    with (tmp_path / "metrics.csv").open("a") as file:
        file.write("128,2,0.3")
    with opened(tmp_path) as log:
        log.append(row(2))

    assert list(read_metrics(tmp_path / "metrics.csv")["step"]) == [64, 128]


def test_tensorboard_has_the_same_scalars_and_drops_those_after_the_checkpoint(tmp_path):
    """Read back with TensorBoard's own reader: old updates 1 and 2, then the new 3 and 4."""
    with opened(tmp_path) as log:
        log_updates(log, 1, 3)
        log.append(row(4, mean_reward=77.0))
    with opened(tmp_path) as log:
        log.resume_from(2 * STEPS_PER_UPDATE)
        log_updates(log, 3, 4)

    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()

    assert set(events.Tags()["scalars"]) == set(COLUMNS) - set(COUNTERS)
    for column in LEARNING_COLUMNS:
        scalars = events.Scalars(column)
        assert [scalar.step for scalar in scalars] == [64, 128, 192, 256]
        expected = [row(update)[column] for update in range(1, 5)]
        assert [scalar.value for scalar in scalars] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("step", [32, 96, 1000])
def test_a_checkpoint_of_another_run_cannot_be_resumed(tmp_path, step):
    """The log must have a row of exactly the checkpoint's step, and stays as it was."""
    with opened(tmp_path) as log:
        log_updates(log, 1, 2)
        before = log.csv_path.read_bytes()

        with pytest.raises(ValueError, match=f"must have a row of the checkpoint's step {step}"):
            log.resume_from(step)

        assert log.csv_path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": 64}, "step must be above 64, the last one, got 64"),
        ({"step": 1.5}, "metric step must be a number, got 1.5|metric step must be an integer"),
        ({"entropy": "high"}, "metric entropy must be a number, got 'high'"),
        ({"entrophy": 1.0}, "a row must have the columns step, update, .* got .*entrophy"),
    ],
)
def test_a_wrong_row_is_refused_and_nothing_is_written(tmp_path, changes, message):
    """The log has the columns and the order that it was opened with."""
    with opened(tmp_path) as log:
        log.append(row(1))
        before = log.csv_path.read_bytes()

        with pytest.raises(ValueError, match=message):
            log.append(row(2, **changes))

        assert log.csv_path.read_bytes() == before


def good_lines(folder: Path) -> list[str]:
    with opened(folder) as log:
        log_updates(log, 1, 3)
    return (folder / "metrics.csv").read_text().splitlines()


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (0, lambda line: line.replace("entropy", "x"), r"csv, line 1: the header must be"),
        (0, lambda line: "", r"csv, line 1: the header must be .* got ''"),
        (2, lambda line: line + ",1.0", r"csv, line 3: must have 15 cells, got 16"),
        (2, lambda line: "", r"csv, line 3: must have 15 cells, got 1"),
        (1, lambda line: line.replace("128.0", "fast"), r"line 2: steps_per_s must be a number"),
        (1, lambda line: line.replace("64", "6.4", 1), r"line 2: step must be an integer"),
        (3, lambda line: line.replace("192", "100", 1), r"line 4: step must be above 128, got 100"),
    ],
)
def test_a_corrupt_log_is_refused_with_the_line_and_left_as_it_was(
    tmp_path, place, change, message
):
    """Both for resuming and for reading."""
    lines = good_lines(tmp_path)
    lines[place] = change(lines[place])
    corrupt = "\n".join(lines) + "\n"
    (tmp_path / "metrics.csv").write_text(corrupt)

    with pytest.raises(ValueError, match=message):
        read_metrics(tmp_path / "metrics.csv")
    with pytest.raises(ValueError, match=message):
        opened(tmp_path)
    assert (tmp_path / "metrics.csv").read_text() == corrupt


def test_a_missing_log_is_named(tmp_path):
    """Reading does not begin a log."""
    with pytest.raises(ValueError, match=r"metrics\.csv: cannot be read: No such file"):
        read_metrics(tmp_path / "metrics.csv")


def test_pandas_alone_reads_the_same_table(tmp_path):
    """The file is ordinary CSV, for any other reader."""
    good_lines(tmp_path)

    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "metrics.csv"),
        read_metrics(tmp_path / "metrics.csv"),
    )
