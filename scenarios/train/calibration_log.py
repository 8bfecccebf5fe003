"""The log of the calibrations of a training: a CSV file, one row each."""

from collections.abc import Sequence
from pathlib import Path

from calibration.loop import Entry
from des.base.csv_text import csv_line
from des.base.text_files import read_text
from scenarios.frame.files import write_text


class CalibrationLog:
    """Appends calibrations to a file.

    The last columns, `calibration.loop.WALL_CLOCK_COLUMNS`, measure this machine; the others are
    equal in equal runs.

    Parameters
    ----------
    path
        The file; it is there after the first calibration.
    earlier
        Calibrations up to a checkpoint. Their rows stay; those that are missing are made again,
        without what the clock said, and later ones are cut: ``note`` says so.

    Raises
    ------
    ValueError
        If an existing file cannot be read.
    """

    def __init__(self, path: Path, earlier: Sequence[Entry] = ()) -> None:
        self._path = path
        self._lines: list[str] = []
        kept = read_text(path).splitlines(keepends=True)[1:] if path.exists() else []
        for position, entry in enumerate(earlier):
            self._add(entry)
            if position < len(kept):
                self._lines[-1] = kept[position]
        self.note = _note(path, num_kept=len(kept), num_earlier=len(earlier))
        if self.note and self._lines:
            write_text(path, "".join(self._lines))
        elif self.note:
            path.unlink()

    def append(self, entry: Entry) -> None:
        """Write a calibration; it is on disk when this returns."""
        self._add(entry)
        write_text(self._path, "".join(self._lines))

    def _add(self, entry: Entry) -> None:
        row = entry.row()
        if not self._lines:
            self._lines.append(csv_line(row))
        self._lines.append(csv_line(row.values()))


def _note(path: Path, *, num_kept: int, num_earlier: int) -> str:
    """Say how the file differed from the checkpoint; empty if it did not."""
    if num_kept > num_earlier:
        return f"{path}: {num_kept - num_earlier} rows after the checkpoint are cut"
    if num_kept < num_earlier:
        return (
            f"{path}: {num_earlier - num_kept} rows before the checkpoint were missing and are "
            "made again from it, without what the clock said"
        )
    return ""
