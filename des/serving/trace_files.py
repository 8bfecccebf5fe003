"""Readers of public traces of inference requests; the first row arrives at 0.

Form, by what it is known, and its traps:

* Azure 2023-2025: TIMESTAMP, ContextTokens, GeneratedTokens; CRLF, decimals, zones
* Bailian: JSON lines with chat_id, parent_chat_id or turn; seconds; blocks of 16 tokens
* BurstGPT: Timestamp, Request tokens, Response tokens; seconds; 0 response tokens: failed
* Mooncake: JSON lines without these; whole milliseconds; names of 512-token blocks of the prompt
* Vidur: arrived_at, num_prefill_tokens, num_decode_tokens; seconds
* any other CSV file, with the names of its columns; seconds, or dates and times
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from des.base.checks import require_known
from des.base.strict_json import parse_json
from des.base.text_files import read_text
from des.serving.requests import Request

_STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
_NS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """One row of a trace; 0 output tokens are a request that failed."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix_blocks: tuple[int, ...] = ()


def recognised_form(text: str, source: str, columns: Mapping[str, str] | None = None) -> str:
    """Say which form the text of a file has, and what tells it."""
    if _is_json(text):
        form = _json_form(text)
        return f"{form.name}, by {form.told_by}"
    name, names, _ = _csv_form(_table(text)[1], source, columns)
    return f"{name}, by the columns {', '.join(names)}"


def read_request_trace(
    path: Path, columns: Mapping[str, str] | None = None
) -> tuple[TraceRow, ...]:
    """Read a trace file, whichever its form.

    Parameters
    ----------
    columns
        Columns of a CSV file of another form: of ``time``, ``prompt`` and ``output``.

    Raises
    ------
    ValueError
        If the form is unknown, a value is no number or negative, or rows are out of order; naming
        file, line, column, what is allowed and what came.
    """
    return parse_trace(read_text(path), str(path), columns)


def parse_trace(
    text: str, source: str, columns: Mapping[str, str] | None = None
) -> tuple[TraceRow, ...]:
    """Do what `read_request_trace` does with the text of a file; errors name ``source``."""
    if not _is_json(text):
        rows = list(_csv_rows(text, source, columns))
    elif columns:
        raise ValueError(f"{source}: columns can be given for a CSV file, got lines of JSON")
    else:
        rows = list(_json_rows(text.lstrip(_BLANKS), source))
    if not rows:
        raise ValueError(f"{source}: must have at least 1 row below its header, got 0")
    first = rows[0][0]
    _require_order(rows, source)
    return tuple(
        TraceRow(
            arrival_s=(arrival_ns - first) / _NS,
            prompt_tokens=prompt,
            output_tokens=output,
            prefix_blocks=blocks,
        )
        for arrival_ns, prompt, output, blocks in rows
    )


def requests_of(rows: Sequence[TraceRow]) -> tuple[Request, ...]:
    """Make requests of the rows that have prompt and output tokens, numbered by their rows."""
    return tuple(
        Request(
            request_id=number,
            arrival_s=row.arrival_s,
            prompt_tokens=row.prompt_tokens,
            output_tokens=row.output_tokens,
            prefix_blocks=row.prefix_blocks,
        )
        for number, row in enumerate(rows)
        if row.output_tokens and row.prompt_tokens
    )


Raw = tuple[int, int, int, tuple[int, ...]]
"""Arrival [ns], prompt tokens, output tokens, blocks of the prompt."""


def _require_order(rows: Sequence[Raw], source: str) -> None:
    for line, (before, after) in enumerate(pairwise(rows), start=3):
        if after[0] < before[0]:
            raise ValueError(
                f"{source}: rows must be in order of arrival, row {line} comes "
                f"{(before[0] - after[0]) / _NS:g} s before the one above it"
            )


ToNs = Callable[[str | None, str], int]
"""Reader of a time: its cell and its place in the file. [ns]"""


def _csv_form(
    header: Sequence[str], source: str, columns: Mapping[str, str] | None
) -> tuple[str, tuple[str, str, str], ToNs]:
    """Name of the form of a header, its columns of time, prompt and output, and of its time."""
    if columns:
        for role in columns:
            require_known(f"{source}: columns: unknown", role, _ROLES)
        time, prompt, output = (columns.get(role, role) for role in _ROLES)
        missing = [name for name in (time, prompt, output) if name not in header]
        if missing:
            raise ValueError(f"{source}: must have the columns {', '.join(missing)}; got {header}")
        return "the given columns", (time, prompt, output), _time_ns
    for name, names, to_ns in _FORMS:
        if set(names) <= set(header):
            return name, names, to_ns
    allowed = "; ".join(", ".join(names) for _, names, _ in _FORMS)
    if not header:
        form = f"lines of JSON, or a header with the columns {allowed} or those of --columns"
        raise ValueError(f"{source}: must be {form}; the file is empty")
    name, names, _ = max(_FORMS, key=lambda form: len(set(form[1]) & set(header)))
    lacks = ", ".join(each for each in names if each not in header)
    raise ValueError(
        f"{source}: header must have the columns {allowed}, or be mapped (--columns "
        f"time=T,prompt=P,output=O); got {header}, which of {name}'s lacks {lacks}"
    )


def _table(text: str) -> tuple["csv.DictReader[str]", list[str]]:
    """Reader of the rows of a CSV file, and its header."""
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""))
    header = [str(name).strip() for name in reader.fieldnames or []]
    reader.fieldnames = header
    return reader, header


def _csv_rows(text: str, source: str, columns: Mapping[str, str] | None) -> Iterator[Raw]:
    reader, header = _table(text)
    _, (time, prompt, output), to_ns = _csv_form(header, source, columns)
    for line, row in enumerate(reader, start=2):
        place = f"{source}: line {line}"
        yield (
            to_ns(row[time], f"{place}: {time}"),
            _tokens(row[prompt], f"{place}: {prompt}"),
            _tokens(row[output], f"{place}: {output}"),
            (),
        )


class _JsonForm(NamedTuple):
    """A form of JSON lines: units of its times a second, and tokens of a block."""

    name: str
    told_by: str
    units_per_s: int
    block_tokens: int


_CHATS = ("chat_id", "parent_chat_id", "turn")
_BAILIAN = _JsonForm("Bailian", f"one of {', '.join(_CHATS)}", 1, 16)
_MOONCAKE = _JsonForm("Mooncake", f"JSON lines without {', '.join(_CHATS)}", 1000, 512)


_BLANKS = "\ufeff \r\n"


def _is_json(text: str) -> bool:
    return text.lstrip(_BLANKS).startswith("{")


def _json_form(text: str) -> _JsonForm:
    """Form of the first line."""
    first = text.lstrip(_BLANKS).split("\n", 1)[0]
    return _BAILIAN if any(f'"{key}"' in first for key in _CHATS) else _MOONCAKE


def _json_rows(text: str, source: str) -> Iterator[Raw]:
    form = _json_form(text)
    for line, part in enumerate(text.splitlines(), start=1):
        if not part.strip():
            continue
        place = f"{source}: line {line}"
        try:
            row = parse_json(part)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        needed = {"timestamp", "input_length", "output_length"}
        if not isinstance(row, dict) or not needed <= row.keys():
            raise ValueError(f"{place}: must be an object with {sorted(needed)}, got {part[:80]!r}")
        blocks = row.get("hash_ids", [])
        if not isinstance(blocks, list) or not all(isinstance(each, int) for each in blocks):
            raise ValueError(f"{place}: hash_ids must be a list of whole numbers, got {blocks!r}")
        prompt = _tokens(str(row["input_length"]), f"{place}: input_length")
        needed_blocks = -(-prompt // form.block_tokens)
        if "hash_ids" in row and len(blocks) != needed_blocks:
            raise ValueError(
                f"{place}: hash_ids must be {needed_blocks} for {prompt} tokens in {form.name}'s "
                f"blocks of {form.block_tokens}, got {len(blocks)}"
            )
        time_ns = _decimal_ns(str(row["timestamp"]), f"{place}: timestamp")
        if form.units_per_s > 1 and time_ns % _NS:
            raise ValueError(
                f"{place}: timestamp must be whole milliseconds in {form.name}'s form, "
                f"got {row['timestamp']!r}; seconds are told by {_BAILIAN.told_by}"
            )
        yield (
            time_ns // form.units_per_s,
            prompt,
            _tokens(str(row["output_length"]), f"{place}: output_length"),
            tuple(blocks),
        )


def _tokens(text: str | None, place: str) -> int:
    """Read a number of tokens, which some files write with decimals."""
    word = (text or "").strip()
    whole = word.removesuffix(".0")
    if not whole.isascii() or not whole.isdigit():
        raise ValueError(f"{place} must be a whole number of tokens, at least 0, got {text!r}")
    return int(whole)


def _decimal_ns(text: str | None, place: str) -> int:
    """Seconds as whole nanoseconds."""
    try:
        time_s = float((text or "").strip())
        nanoseconds = round(time_s * _NS)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{place} must be a time of at least 0, got {text!r}") from error
    if nanoseconds < 0:
        raise ValueError(f"{place} must be a time of at least 0, got {text!r}")
    return nanoseconds


def _time_ns(text: str | None, place: str) -> int:
    """Nanoseconds of seconds, or of a date and time."""
    is_stamp = _STAMP.fullmatch((text or "").strip()) is not None
    return _stamp_ns(text, place) if is_stamp else _decimal_ns(text, place)


def _stamp_ns(text: str | None, place: str) -> int:
    """Nanoseconds of a date and time, which is in UTC where it has no zone.

    Examples
    --------
    >>> _stamp_ns("2024-05-10 01:00:00.5+01:00", "row") - _stamp_ns("2024-05-10 00:00:00", "row")
    500000000
    """
    found = _STAMP.fullmatch((text or "").strip())
    if found is None:
        raise ValueError(f"{place} must be a time such as 2023-11-16 18:17:03.97996, got {text!r}")
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    try:
        days = date(year, month, day).toordinal()
    except ValueError as error:
        raise ValueError(f"{place} must be a date that exists, got {text!r}") from error
    zone = found[8] or "Z"
    offset = 0 if zone == "Z" else int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    seconds = days * 86400 + hour * 3600 + minute * 60 + second
    seconds += offset if zone[0] == "-" else -offset
    return seconds * _NS + int((found[7] or "").ljust(9, "0"))


_ROLES = ("time", "prompt", "output")

_FORMS: tuple[tuple[str, tuple[str, str, str], ToNs], ...] = (
    ("Azure", ("TIMESTAMP", "ContextTokens", "GeneratedTokens"), _stamp_ns),
    ("Vidur", ("arrived_at", "num_prefill_tokens", "num_decode_tokens"), _decimal_ns),
    ("BurstGPT", ("Timestamp", "Request tokens", "Response tokens"), _decimal_ns),
)
"""Each form, its columns of time, prompt and output, and how its time is read."""
