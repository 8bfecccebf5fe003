"""Cases of the serving world: folders of small files, on disk or in the shipped archive."""

import csv
import io
import lzma
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from des.base.command import UsageError
from des.base.strict_json import parse_json
from des.serving.requests import Request
from scenarios.reproduce.cases import PUBLISHED

ARCHIVE = PUBLISHED / "serving" / "cases.tar.xz"
"""All cases that come with EastWest, a folder each; `data/README.md` names their sources."""
_EXPECTED = "expected.json"
Files = Mapping[str, bytes]
"""Files of one case, by their names."""


@cache
def shipped_cases() -> Mapping[str, Files]:
    """Cases of the archive, by the names of their folders."""
    found: dict[str, dict[str, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(ARCHIVE.read_bytes()))) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                folder, _, name = member.name.rpartition("/")
                found.setdefault(folder, {})[name] = content.read()
    return {folder: files for folder, files in found.items() if _EXPECTED in files}


def cases_in(folder: Path) -> Mapping[str, Files]:
    """Cases below a folder: every folder with an answer that is expected.

    Raises
    ------
    UsageError
        If there is none.
    """
    places = sorted(path.parent for path in folder.rglob(_EXPECTED))
    if not places:
        raise UsageError(f"cases: must be a folder of cases, each with {_EXPECTED}; got {folder}")
    return {str(place.relative_to(folder)): _files_of(place) for place in places}


def one_case(name: str) -> Files:
    """Files of a folder, or of a case of the archive.

    Raises
    ------
    UsageError
        If there is neither.
    """
    folder = Path(name)
    if folder.is_dir():
        return _files_of(folder)
    shipped = shipped_cases()
    matching = [each for each in shipped if each == name or each.endswith(f"/{name}")]
    if len(matching) != 1:
        raise UsageError(
            f"CASE must be a folder or one shipped case, such as {next(iter(shipped))}, "
            f"got {name!r}, which names {len(matching)}; without CASE all are listed"
        )
    return shipped[matching[0]]


def _files_of(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def json_of(files: Files, name: str) -> dict[str, Any]:
    """Read a JSON object of a case.

    Raises
    ------
    ValueError
        If it is not one.
    """
    try:
        found = parse_json(files[name].decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{name}: must be an object, got {type(found).__name__}")
    return found


def requests_in(files: Files) -> tuple[Request, ...]:
    """Read the requests of a case.

    Raises
    ------
    ValueError
        If a column is missing or a value is wrong, naming the line.
    """
    return tuple(_requests(files))


def _requests(files: Files) -> Iterator[Request]:
    text = files["requests.csv"].decode("utf-8")
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        try:
            yield Request(
                request_id=int(row["request_id"]),
                arrival_s=float(row["arrival_s"]),
                prompt_tokens=int(row["prompt_tokens"]),
                output_tokens=int(row["output_tokens"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"requests.csv: line {line}: {error}") from error
