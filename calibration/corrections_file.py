"""Correction factors on disk: a JSON file that is read strictly."""

import json
import reprlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from des.atomic_write import write_atomically
from des.corrections import Corrections

FORMAT = "eastwest-corrections"
VERSION = 1


class _FactorsForm(BaseModel):
    """All figures of `Corrections`; their ranges are checked there."""

    model_config = ConfigDict(extra="forbid", strict=True)

    compute_time_factor: float
    wan_bandwidth_factor: float
    wan_latency_factor: float
    message_overhead_s: float


class _FileForm(BaseModel):
    """The header says what the file is before anyone trusts its numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["eastwest-corrections"]
    version: Literal[1]
    corrections: _FactorsForm


def write_corrections(corrections: Corrections, path: str | Path) -> None:
    """Write the factors, whole or not at all; `read_corrections` returns the same floats.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    content = {"format": FORMAT, "version": VERSION, "corrections": asdict(corrections)}
    write_atomically(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def read_corrections(path: str | Path) -> Corrections:
    """Read factors that `write_corrections` wrote.

    Every key must be there and no other: a misspelt factor would otherwise correct nothing.

    Raises
    ------
    ValueError
        If the file cannot be read or is anything else; the one line names the file, the field,
        what is allowed and what came.
    """
    try:
        content = json.loads(
            Path(path).read_text(encoding="utf-8"), object_pairs_hook=_without_repeats
        )
        form = _FileForm.model_validate(content)
        return Corrections(**form.corrections.model_dump())
    except OSError as error:
        raise ValueError(f"{path}: corrections file cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: line {error.lineno}: must be JSON, got {error.msg}") from error
    except RecursionError as error:
        raise ValueError(f"{path}: must be JSON, got lists too deep to read") from error
    except ValidationError as error:
        raise ValueError(f"{path}: {_first_error(error)}") from error
    except ValueError as error:  # a repeated key, a factor out of range, not UTF-8
        raise ValueError(f"{path}: {error}") from error


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary; JSON itself would let the last of two equal keys win."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{key}: must be given once, got it twice")
        values[key] = value
    return values


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "file"
    got = reprlib.repr(first["input"])
    if first["type"] == "missing":
        return f"{field}: must be given, got nothing"
    if first["type"] == "extra_forbidden":
        return f"{field}: must be left out or spelled as documented, got {got}"
    return f"{field}: {first['msg'].replace('Input should be', 'must be')}, got {got}"
