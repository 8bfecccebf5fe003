"""Cases of the serving world: folders of small files, on disk or in the shipped archive.

With the answer to cases of traces, and the agreement of an answer with the expected one.
"""

import csv
import io
import lzma
import math
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from des.base.checks import prefixed_errors
from des.base.command import UsageError
from des.base.strict_json import parse_json
from des.serving.requests import Request
from des.serving.trace_files import TraceRow, parse_trace
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
    with prefixed_errors(f"{name}: "):
        found = parse_json(files[name].decode("utf-8"))
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


_SUFFIXES = (".csv", ".jsonl")


def traces_answer(files: Files) -> dict[str, Any]:
    """Read all traces of a case and sum them up, by file."""
    return {
        name: _sum(parse_trace(content.decode("utf-8"), name), has_blocks=name.endswith("l"))
        for name, content in files.items()
        if name.endswith(_SUFFIXES)
    }


def _sum(rows: tuple[TraceRow, ...], *, has_blocks: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "rows": len(rows),
        "first": _row(rows[0]),
        "last": _row(rows[-1]),
        "sum_prompt_tokens": sum(row.prompt_tokens for row in rows),
        "sum_output_tokens": sum(row.output_tokens for row in rows),
        "max_prompt_tokens": max(row.prompt_tokens for row in rows),
        "max_output_tokens": max(row.output_tokens for row in rows),
        "sum_arrival_s": sum(row.arrival_s for row in rows),
    }
    if has_blocks:
        blocks = [block for row in rows for block in row.prefix_blocks]
        answer |= {"prefix_blocks": len(blocks), "distinct_prefix_blocks": len(set(blocks))}
    return answer


def _row(row: TraceRow) -> dict[str, Any]:
    return {
        "arrival_s": row.arrival_s,
        "prompt_tokens": row.prompt_tokens,
        "output_tokens": row.output_tokens,
    }


TOLERANCE = 1e-6
"""Relative or absolute difference of numbers that are not whole."""
_KEYS = {"requests": "request_id", "instances": "id"}


def first_difference(expected: Any, answer: Any) -> str | None:
    """Say where an answer differs first, or None.

    Columns of ``requests`` and ``instances`` may come in any order of their names.

    Examples
    --------
    >>> first_difference({"a": [1, 2.0]}, {"a": [1, 2.0000001], "b": 0})
    >>> first_difference({"a": [1]}, {"a": [2]})
    '.a[0]: expected 1, got 2'
    """
    return next(_differences(expected, answer, ""), None)


def _differences(expected: Any, answer: Any, place: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(answer, dict):
        key = _KEYS.get(place.removeprefix("."), "")
        if key in expected and key in answer:
            expected, answer = _by_name(expected, key), _by_name(answer, key)
        for name, value in expected.items():
            if name in answer:
                yield from _differences(value, answer[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}: expected a value, got none"
    elif isinstance(expected, list) and isinstance(answer, list) and len(expected) == len(answer):
        for number, (one, other) in enumerate(zip(expected, answer, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif not _is_same(expected, answer):
        yield f"{place}: expected {expected!r}, got {answer!r}"


def _is_same(expected: Any, answer: Any) -> bool:
    if isinstance(expected, float) and isinstance(answer, int | float):
        return math.isclose(expected, answer, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(expected == answer)


def _by_name(table: Mapping[str, list[Any]], key: str) -> dict[str, list[Any]]:
    order = sorted(range(len(table[key])), key=table[key].__getitem__)
    return {
        name: [column[place] for place in order] if len(column) == len(order) else column
        for name, column in table.items()
    }
