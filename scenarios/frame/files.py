"""Files of a run: written whole or not at all, read with errors that name the file and line."""

from __future__ import annotations

import io
import json
from pathlib import Path

from des.base.atomic_write import write_atomically
from des.base.checks import prefixed_errors
from des.base.csv_text import frame_csv, plain_cell
from des.base.lazy import lazy_imports
from des.base.text_files import read_text

with lazy_imports(__name__):
    import pandas as pd


MOST_COLUMNS = 1000
"""Columns of a table that is read; pandas takes milliseconds for each."""


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    write_atomically(path, content)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically.

    Raises
    ------
    ValueError
        If a number is NaN or infinite, which JSON does not have.
    """
    write_bytes(path, json_bytes(path, value))


def json_bytes(path: Path, value: object) -> bytes:
    """Return the content of a JSON file; errors name ``path``.

    Raises
    ------
    ValueError
        If a number is NaN or infinite, which JSON does not have.
    """
    with prefixed_errors(f"{path}: "):
        text = json.dumps(value, indent=2, allow_nan=False)
    return f"{text}\n".encode()


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a CSV file atomically; `read_csv` returns the same floats."""
    write_text(path, frame_csv(frame))


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file, each float to the last bit.

    Raises
    ------
    ValueError
        If the file cannot be read or is not a table.
    """
    text = read_text(path)
    num_columns = text.partition("\n")[0].count(",") + 1
    if num_columns > MOST_COLUMNS:
        raise ValueError(f"{path}: must have at most {MOST_COLUMNS} columns, got {num_columns}")
    with prefixed_errors(f"{path}: not a table: "):
        frame = pd.read_csv(
            io.StringIO(text),
            keep_default_na=False,  # a planner may be called none
            na_values=["", "nan"],
        )
    texts = frame.select_dtypes(include=["object", "str"]).columns
    marked = [name for name in texts if frame[name].astype(str).str.startswith("'").any()]
    return frame.assign(**{name: frame[name].map(plain_cell) for name in marked})
