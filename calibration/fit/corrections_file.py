"""Correction factors on disk: a JSON file that is read strictly."""

import json
import reprlib
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from calibration.fit.fitted_for import FittedFor
from des.base.atomic_write import write_atomically
from des.base.strict_json import parse_json
from des.base.text_files import read_text
from des.plan.corrections import Corrections

FORMAT = "eastwest-corrections"
VERSION = 2


class _Header(BaseModel):
    """Provenance of a corrections file, read before its numbers are trusted."""

    model_config = ConfigDict(extra="allow", strict=True)

    format: Literal["eastwest-corrections"]
    version: Literal[1, 2]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _FirstFactorsForm(_Form):
    """Figures that version 1 knew; their ranges are checked by `Corrections`."""

    compute_time_factor: float
    wan_bandwidth_factor: float
    wan_latency_factor: float
    message_overhead_s: float


class _FactorsForm(_FirstFactorsForm):
    """All figures of `Corrections`."""

    intra_bandwidth_factor: float
    intra_latency_factor: float


class _LawForm(_Form):
    """Fields of `TransportLaw`, which checks their ranges."""

    connections: str
    first_window_bytes: float
    segment_bytes: float
    start_up_round_trips: float
    is_paced: bool
    growth: float = 1.0
    efficiency: float
    recovery_round_trips: float
    recovery_after_products: float | None


class _CorrectedForm(_FactorsForm):
    """Figures, and the law of the transport where there is one."""

    transport: _LawForm | None = None


class _FittedForForm(_Form):
    """Fields of `FittedFor`, which checks the digests."""

    model: str
    model_digest: str
    network: str
    network_digest: str


class _FirstFileForm(_Form):
    """Version 1, which left links inside domains as they are and had no mark."""

    format: str
    version: int
    corrections: _FirstFactorsForm


class _FileForm(_Form):
    format: str
    version: int
    corrections: _CorrectedForm
    fitted_for: _FittedForForm | None


def write_corrections(
    corrections: Corrections, path: str | Path, *, fitted_for: FittedFor | None = None
) -> None:
    """Write the factors, whole or not at all; `read_corrections` returns the same floats.

    Parameters
    ----------
    corrections, path
        Factors, and the path of the file.
    fitted_for
        The only model and network that the factors are for; None where they are for any.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    write_atomically(path, corrections_bytes(corrections, fitted_for))


def corrections_bytes(corrections: Corrections, fitted_for: FittedFor | None) -> bytes:
    """Make the content of a file that `write_corrections` writes."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "corrections": corrections.plain(),
        "fitted_for": None if fitted_for is None else asdict(fitted_for),
    }
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def read_corrections(path: str | Path, *, used_for: FittedFor | None = None) -> Corrections:
    """Read factors that `write_corrections` wrote.

    Every key must be there and no other: a misspelt factor would otherwise correct nothing. Files
    of version 1 are read as well. They knew nothing of links inside domains and were applied with
    these as they are, so those factors are 1, and they may be used for anything.

    Parameters
    ----------
    path
        The file.
    used_for
        Subject to be corrected; None skips the check.

    Raises
    ------
    ValueError
        If the file cannot be read, is anything else, or was fitted for another model or network
        than it is to be used for; the one line names the file, the field, what is allowed and what
        came.
    """
    text = read_text(Path(path), "corrections file ")
    try:
        corrections, fitted_for = _parts(parse_json(text))
        if fitted_for is not None and used_for is not None:
            fitted_for.require_same(used_for)
        return corrections
    except ValidationError as error:
        raise ValueError(f"{path}: {_first_error(error)}") from error
    except ValueError as error:  # no JSON, a repeated key, a factor out of range, another model
        raise ValueError(f"{path}: {error}") from error


def _parts(content: object) -> tuple[Corrections, FittedFor | None]:
    """Check a file of any version and take it apart."""
    if _Header.model_validate(content).version == 1:
        first = _FirstFileForm.model_validate(content)
        return Corrections(**first.corrections.model_dump()), None
    form = _FileForm.model_validate(content)
    mark = form.fitted_for
    fitted_for = None if mark is None else FittedFor(**mark.model_dump())
    return Corrections.from_plain(form.corrections.model_dump()), fitted_for


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "file"
    got = reprlib.repr(first["input"])
    if first["type"] == "missing":
        return f"{field}: must be given, got nothing"
    if first["type"] == "extra_forbidden":
        return f"{field}: must be left out or spelled as documented, got {got}"
    return f"{field}: {first['msg'].replace('Input should be', 'must be')}, got {got}"
