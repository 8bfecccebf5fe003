"""A log with one CSV row an update, held against the checkpoint that a training is resumed from."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from des.base.csv_text import csv_line
from des.base.text_files import read_text
from scenarios.frame.files import write_text


class UpdateLog:
    """Appends a row after each update; use it in a ``with`` statement.

    Parameters
    ----------
    path
        The file; begun if missing.
    columns
        Its columns.
    num_updates
        Updates that the checkpoint has behind it; 0 without one. Later rows are cut, a last one
        that an interruption has cut short among them: ``note`` says how many, empty if none.

    Raises
    ------
    ValueError
        If the file has other columns, or ends before the checkpoint: then the two are not of the
        same run, or of another moment of it.
    """

    def __init__(self, path: Path, columns: Sequence[str], *, num_updates: int) -> None:
        self.path, self.columns = path, tuple(columns)
        header = csv_line(self.columns)
        lines = read_text(path).splitlines(keepends=True) if path.exists() else [header]
        if lines[:1] != [header]:
            raise ValueError(
                f"{path}, line 1: the header must be {header.strip()!r}, "
                f"got {''.join(lines[:1]).strip()!r}"
            )
        whole = [line for line in lines[1:] if line.endswith("\n")]
        if len(whole) < num_updates:
            raise ValueError(
                f"{path}: must have a row for each of the {num_updates} updates of the checkpoint, "
                f"got {len(whole)}"
            )
        num_cut = len(lines) - 1 - num_updates
        self.note = ""
        if num_cut:
            self.note = (
                f"{path}: {num_cut} rows after the checkpoint, which is of update {num_updates}, "
                "are cut; their updates are made again"
            )
        write_text(path, "".join([header, *whole[:num_updates]]))
        self._file: TextIO = path.open("a", encoding="utf-8", newline="")

    def __enter__(self) -> "UpdateLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def append(self, row: Mapping[str, object]) -> None:
        """Write one update; the end of this process cannot lose it, that of the machine can."""
        self._file.write(csv_line([row[column] for column in self.columns]))
        self._file.flush()

    def sync(self) -> None:
        """Let all rows reach the disk, before a checkpoint that is after them does."""
        os.fsync(self._file.fileno())
