"""The training log: one CSV row per update, the same scalars in TensorBoard, no torch."""

import os
import time
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path

import pandas as pd
from tensorboard.compat.proto.event_pb2 import (  # type: ignore[import-untyped]
    Event,
    SessionLog,
)
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.event_file_writer import (  # type: ignore[import-untyped]
    EventFileWriter,
)

from des.base.text_files import read_text
from scenarios.frame.files import write_text

COUNTERS = ("step", "update")
LEARNING_COLUMNS = (
    "mean_reward",
    "mean_iteration_time_s",
    "mean_utilisation",
    "mean_communication_cost_bytes",
    "policy_loss",
    "value_loss",
    "entropy",
    "approximate_kl",
    "clip_fraction",
    "explained_variance",
    "learning_rate",
)
WALL_CLOCK_COLUMNS = ("wall_s", "steps_per_s")


class MetricsLog:
    """Appends one row per update to a CSV file and mirrors it into TensorBoard.

    The columns are `COUNTERS`, then ``learning_columns``, then ``wall_clock_columns``, so that two
    equal runs differ only in the last columns. An existing file is continued, without a last line
    that an interruption cut short. Use it in a ``with`` statement, or call `close`.

    Parameters
    ----------
    csv_path
        The metrics.csv of the run; begun if missing, checked if present.
    tensorboard_dir
        Folder of the event files.
    learning_columns
        Columns that a repeated run must reproduce to the last bit.
    wall_clock_columns
        Columns that measure this machine.

    Raises
    ------
    ValueError
        If the existing file is corrupt or has other columns.
    """

    def __init__(
        self,
        *,
        csv_path: Path,
        tensorboard_dir: Path,
        learning_columns: Sequence[str] = LEARNING_COLUMNS,
        wall_clock_columns: Sequence[str] = WALL_CLOCK_COLUMNS,
    ) -> None:
        self.csv_path = csv_path
        self.columns = (*COUNTERS, *learning_columns, *wall_clock_columns)
        if not csv_path.exists():
            self._rewrite([",".join(self.columns)])
        lines = _lines(csv_path, self.columns)
        self._rewrite(lines)
        self._last_step = _step(lines[-1]) if len(lines) > 1 else 0
        self._events = EventFileWriter(str(tensorboard_dir))

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, row: Mapping[str, float]) -> None:
        """Write one update; the end of this process cannot lose it, that of the machine can.

        Parameters
        ----------
        row
            One number for each of ``columns``; ``step`` must grow from row to row.

        Raises
        ------
        ValueError
            If a column is missing, unknown or no number, or the step does not grow.
        """
        if set(row) != set(self.columns):
            raise ValueError(
                f"{self.csv_path}: a row must have the columns {', '.join(self.columns)}, "
                f"got {', '.join(row)}"
            )
        cells = [_cell(row[column], column) for column in self.columns]
        step = int(cells[0])
        if step <= self._last_step:
            raise ValueError(
                f"{self.csv_path}: step must be above {self._last_step}, the last one, got {step}"
            )
        with self.csv_path.open("a", encoding="utf-8", newline="") as file:
            file.write(",".join(cells) + "\n")
        self._last_step = step
        scalars = [
            Summary.Value(tag=column, simple_value=float(row[column]))
            for column in self.columns
            if column not in COUNTERS
        ]
        self._add(Event(wall_time=time.time(), step=step, summary=Summary(value=scalars)))

    def sync(self) -> None:
        """Let all rows reach the disk, before a checkpoint that is after them does."""
        with self.csv_path.open("rb") as file:
            os.fsync(file.fileno())

    def resume_from(self, step: int) -> int:
        """Drop every row after the checkpoint's step, as if the run had stopped there.

        In TensorBoard the scalars after ``step`` are marked as superseded.

        Returns
        -------
        int
            Rows that were dropped.

        Raises
        ------
        ValueError
            If the log does not reach ``step``: a checkpoint is written after its row, so then the
            two files are not of the same run.
        """
        header, *rows = _lines(self.csv_path, self.columns)
        kept = [row for row in rows if _step(row) <= step]
        last_step = _step(kept[-1]) if kept else 0
        if last_step != step:
            raise ValueError(
                f"{self.csv_path}: must have a row of the checkpoint's step {step}, "
                f"the nearest before it is {last_step}"
            )
        self._rewrite([header, *kept])
        self._last_step = step
        restart = SessionLog(status=SessionLog.START)
        self._add(Event(wall_time=time.time(), step=step + 1, session_log=restart))
        return len(rows) - len(kept)

    def close(self) -> None:
        """Finish the event file."""
        self._events.close()

    def _rewrite(self, lines: Sequence[str]) -> None:
        write_text(self.csv_path, "".join(f"{line}\n" for line in lines))

    def _add(self, event: Event) -> None:
        self._events.add_event(event)
        self._events.flush()


def read_metrics(
    csv_path: Path,
    *,
    learning_columns: Sequence[str] = LEARNING_COLUMNS,
    wall_clock_columns: Sequence[str] = WALL_CLOCK_COLUMNS,
) -> pd.DataFrame:
    """Read what `MetricsLog` wrote, each float to the last bit.

    Raises
    ------
    ValueError
        If the file is missing or corrupt, naming the line.
    """
    columns = (*COUNTERS, *learning_columns, *wall_clock_columns)
    rows = [line.split(",") for line in _lines(csv_path, columns)[1:]]
    return pd.DataFrame(
        {
            column: pd.Series(
                [int(row[place]) if column in COUNTERS else float(row[place]) for row in rows],
                dtype="int64" if column in COUNTERS else "float64",
            )
            for place, column in enumerate(columns)
        }
    )


def _lines(csv_path: Path, columns: Sequence[str]) -> list[str]:
    """Return the checked header and rows, without a last row cut short by an interruption."""
    *lines, unfinished = read_text(csv_path).split("\n")
    header = lines[0] if lines else unfinished
    if header != ",".join(columns):
        raise ValueError(
            f"{csv_path}, line 1: the header must be {','.join(columns)!r}, got {header!r}"
        )
    last_step = 0
    for number, line in enumerate(lines[1:], start=2):
        _check_row(line, columns, place=f"{csv_path}, line {number}")
        if _step(line) <= last_step:
            raise ValueError(
                f"{csv_path}, line {number}: step must be above {last_step}, got {_step(line)}"
            )
        last_step = _step(line)
    return lines


def _check_row(line: str, columns: Sequence[str], *, place: str) -> None:
    cells = line.split(",")
    if len(cells) != len(columns):
        raise ValueError(f"{place}: must have {len(columns)} cells, got {len(cells)}")
    for column, cell in zip(columns, cells, strict=True):
        try:
            number = int(cell) if column in COUNTERS else float(cell)
            if column in COUNTERS and abs(number) >= 2**63:
                raise ValueError("a counter has 64 bits")
        except ValueError as error:
            allowed = "an integer of 64 bits" if column in COUNTERS else "a number"
            raise ValueError(f"{place}: {column} must be {allowed}, got {cell!r}") from error


def _step(line: str) -> int:
    return int(line.split(",", maxsplit=1)[0])


def _cell(value: object, column: str) -> str:
    """Write a number so that reading it gives the same bits."""
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real) and column not in COUNTERS:
        return repr(float(value))
    raise ValueError(f"metric {column} must be a number, got {value!r}")
