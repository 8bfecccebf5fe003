"""The log of the calibrations of a training: a CSV file, one row each."""

import csv
import io
from pathlib import Path

from calibration.loop import Entry
from scenarios.files import read_text, write_text


class CalibrationLog:
    """Appends calibrations to a file; the first ``num_kept`` rows of an existing one stay.

    The last columns, `calibration.loop.WALL_CLOCK_COLUMNS`, measure this machine; the others are
    equal in equal runs.

    Raises
    ------
    ValueError
        If there are fewer rows, or the file cannot be read.
    """

    def __init__(self, path: Path, *, num_kept: int = 0) -> None:
        self._path = path
        self._lines: list[str] = []
        if num_kept:
            self._lines = read_text(path).splitlines(keepends=True)[: num_kept + 1]
            if len(self._lines) != num_kept + 1:
                raise ValueError(
                    f"{path}: must have a row for each of the {num_kept} calibrations of the "
                    f"checkpoint, got {max(0, len(self._lines) - 1)}"
                )

    def append(self, entry: Entry) -> None:
        """Write a calibration; it is on disk when this returns."""
        row = entry.row()
        if not self._lines:
            self._lines.append(_csv_line(list(row)))
        self._lines.append(_csv_line(list(row.values())))
        write_text(self._path, "".join(self._lines))


def _csv_line(cells: list[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)  # floats come back to the last bit
    return buffer.getvalue()
