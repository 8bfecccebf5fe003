"""The output files of a case in a form that equal runs share, and the figures in them."""

import csv
import hashlib
import io
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader  # type: ignore[import-untyped]

from agents.ppo.checkpoint import unpack_content
from bench.behaviour.rules import NAMES, applied, emptied_columns

TEXTS = {".json", ".csv", ".md", ".html", ".yaml", ".yml", ".txt", ".log", ".sh", ""}
FIGURES = "#figures"
"""Ends the name of the second form of a file: its numbers, or the contents of its arrays."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")
_PICTURE = re.compile(r"data:image/[a-z+]+;base64,([^\"']*)")
_OF_THE_ENGINE = {"key", "version", "seal", "created_s"}
"""Columns of a store of runs that hold a date, or a digest of the sources of the engine."""


def normalised(folder: Path, case: str, paths: Mapping[str, str]) -> dict[str, bytes]:
    """Return the contents of all files of a case by name, each in its one or two forms.

    Parameters
    ----------
    folder
        Folder in which the case has run.
    case
        Its name.
    paths
        Placeholders for folders of this machine in texts.
    """
    found: dict[str, bytes] = {}
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = applied(path.relative_to(folder).as_posix(), "", NAMES)
        found |= _forms(path, name, f"{case}/{name}", paths)
    return found


def _forms(path: Path, name: str, file: str, paths: Mapping[str, str]) -> dict[str, bytes]:
    if path.suffix in {".safetensors", ".npz"}:
        arrays = _weights(path) if path.suffix == ".safetensors" else _arrays(path)
        contents = sorted(line.split(" = ", 1)[1] for line in arrays if " = array " in line)
        return {name: _lines(arrays), name + FIGURES: _lines(contents)}
    if "tfevents" in path.name:
        events = _lines(_events(path)).decode()
        return {name: applied(events, file).encode()}
    if path.suffix == ".sqlite":
        return {name: _lines(_rows(path))}
    if path.suffix not in TEXTS:
        return {name: path.read_bytes()}
    text = normalised_text(path.read_text("utf-8"), file, paths)
    return {name: text.encode(), name + FIGURES: _lines(figures(text))}


def normalised_text(text: str, file: str, paths: Mapping[str, str]) -> str:
    """Return a text without what runs do not have in common.

    Parameters
    ----------
    text
        Contents of the file.
    file
        Name of the case and of the file within it, which the rules go by.
    paths
        Folders of this machine, and what is written in their place; the longest come first.
    """
    for folder in sorted(paths, key=len, reverse=True):
        text = text.replace(folder, paths[folder])
    columns = emptied_columns(file)
    if columns and file.endswith(".csv"):
        text = _without(text, columns)
    text = _PICTURE.sub(lambda found: f"picture {_digest(found[1].encode())}", text)
    return applied(text, file)


def figures(text: str) -> list[str]:
    """Return all numbers of a text in their order; digits within a name are none.

    Examples
    --------
    >>> figures("llama2_7b, 16 layers: 3.5 s, +1e-3 %")
    ['16', '3.5', '+1e-3']
    """
    return _NUMBER.findall(text)


def _without(text: str, columns: frozenset[str]) -> str:
    rows = list(csv.reader(io.StringIO(text)))
    emptied = {number for number, name in enumerate(rows[0]) if name in columns}
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows[1:]:
        writer.writerow("" if number in emptied else cell for number, cell in enumerate(row))
    return target.getvalue()


def _weights(path: Path) -> list[str]:
    return _leaves(unpack_content(path.read_bytes())[1], "")


def _leaves(value: object, name: str) -> list[str]:
    """Return a line for every plain value and every array of a checkpoint."""
    if isinstance(value, np.ndarray):
        return [f"{name} = {_array(value)}"]
    if isinstance(value, dict):
        parts = [(f"{name}.{key}", each) for key, each in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{name}[{number}]", each) for number, each in enumerate(value)]
    else:
        return [f"{name} = {value!r}"]
    return [line for part, each in parts for line in _leaves(each, part)]


def _arrays(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as arrays:
        return [f"{name} = {_array(arrays[name])}" for name in sorted(arrays)]


def _array(array: "np.ndarray[Any, Any]") -> str:
    contents = np.ascontiguousarray(array).tobytes()
    return f"array {array.dtype} {array.shape} {_digest(contents)}"


def _events(path: Path) -> list[str]:
    return [
        f"{event.step} {value.tag} {value.tensor.float_val} {value.simple_value!r}"
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
    ]


def _rows(path: Path) -> list[str]:
    """Return all rows of the tables of a database, in the order of the alphabet."""
    connection = sqlite3.connect(path)
    try:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = []
        for (table,) in tables.fetchall():
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            names = [each[0] for each in cursor.description]
            for row in cursor.fetchall():
                cells = zip(names, row, strict=True)
                kept = [f"{name}={cell!r}" for name, cell in cells if name not in _OF_THE_ENGINE]
                found.append(f"{table}: {' '.join(kept)}")
        return sorted(found)
    finally:
        connection.close()


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()
