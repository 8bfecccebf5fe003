"""CSV text without formulas: an apostrophe precedes what a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of what spreadsheets take for formulas."""


def safe_cell(cell: object) -> object:
    """Return a cell that is no formula; numbers, also as text, stay as they are.

    Examples
    --------
    >>> safe_cell("=HYPERLINK(0)"), safe_cell("-1.5"), safe_cell(-2), safe_cell("East")
    ("'=HYPERLINK(0)", '-1.5', -2, 'East')
    """
    if isinstance(cell, str) and len(cell) > 1 and cell.lstrip("'")[:1] in _STARTS:
        try:
            float(cell)
        except ValueError:
            return f"'{cell}"
    return cell


def plain_cell(cell: object) -> object:
    """Return the cell that `safe_cell` was given.

    Examples
    --------
    >>> plain_cell(safe_cell("@East")), plain_cell("'t Harde")
    ('@East', "'t Harde")
    """
    if isinstance(cell, str) and cell.startswith("'") and cell.lstrip("'")[:1] in _STARTS:
        return cell[1:]
    return cell


def csv_line(cells: Iterable[object]) -> str:
    """Return one row; floats come back to the last bit."""
    return csv_text([cells])


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows, the header among them; None is an empty cell."""
    buffer = io.StringIO()
    plain = csv.writer(buffer, lineterminator="\n")
    quoted = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [safe_cell(cell) for cell in row]
        (quoted if any(map(_ends_line, cells)) else plain).writerow(cells)
    return buffer.getvalue()


def _ends_line(cell: object) -> bool:
    """Return whether a cell would end its line unless it is quoted, which Python forgets."""
    return isinstance(cell, str) and "\r" in cell


def csv_of_columns(columns: Sequence[str], rows: Iterable[dict[str, object]]) -> str:
    """Return a table with these columns of rows that may have others."""
    return csv_text([columns, *([row.get(name, "") for name in columns] for row in rows)])


def frame_csv(frame: pd.DataFrame) -> str:
    """Return a table without its index; floats come back to the last bit."""
    changed: dict[str, Any] = {}
    quoting: Literal[0, 2] = csv.QUOTE_MINIMAL
    for name in frame.columns:
        if frame[name].dtype.kind not in "biufcmM":
            cells = frame[name].tolist()
            safe = [safe_cell(cell) for cell in cells]
            if any(map(_ends_line, safe)):
                quoting = csv.QUOTE_NONNUMERIC
            if any(one is not other for one, other in zip(cells, safe, strict=True)):
                changed[name] = safe
    whole = frame.assign(**changed).rename(columns=safe_cell)
    text: str = whole.to_csv(index=False, lineterminator="\n", quoting=quoting)
    return text
