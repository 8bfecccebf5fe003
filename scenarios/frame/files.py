"""Files of a run: written whole or not at all, read with errors that name the file and line."""

from __future__ import annotations

import io
import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from des.base.atomic_write import write_atomically
from des.base.lazy import lazy
from des.base.strict_json import parse_json

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


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
    try:
        text = json.dumps(value, indent=2, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    write_text(path, text + "\n")


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a CSV file atomically; `read_csv` returns the same floats."""
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file, each float to the last bit.

    Raises
    ------
    ValueError
        If the file cannot be read or is not a table.
    """
    text = read_text(path)
    try:
        return pd.read_csv(
            io.StringIO(text),
            keep_default_na=False,  # a planner may be called none
            na_values=["", "nan"],
        )
    except ValueError as error:
        raise ValueError(f"{path}: not a table: {error}") from error


def read_text(path: Path) -> str:
    """Read a UTF-8 file.

    Raises
    ------
    ValueError
        If it cannot be read or is not UTF-8, naming the file.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: cannot be read: not UTF-8 text") from error


def read_json(path: Path) -> object:
    """Read a JSON file.

    Raises
    ------
    ValueError
        If it cannot be read or is not JSON, naming the file and the line.
    """
    text = read_text(path)
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_yaml(path: Path) -> object:
    """Read a YAML file, in which 3e-4 is a number and a repeated key is an error.

    Raises
    ------
    ValueError
        If it cannot be read or is not YAML, naming the file and the line.
    """
    text = read_text(path)
    try:
        root = yaml.compose(text, Loader=_YamlLoader)
        loaded = yaml.load(text, Loader=_YamlLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"{path}, line {line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: not YAML: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{path}: not YAML: nested too deeply") from error
    keys = [key for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []
    for earlier, later in itertools.combinations(keys, 2):
        if earlier.value == later.value:  # PyYAML lets the last one win silently
            line = later.start_mark.line + 1
            raise ValueError(f"{path}, line {line}: {later.value} is given twice")
    return loaded


class _YamlLoader(yaml.SafeLoader):
    """PyYAML takes 3e-4 for text, as YAML 1.1 had it."""


_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
