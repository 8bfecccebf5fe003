"""Reading JSON in which a key given twice is an error, not a silent choice of the last one."""

import json
from collections import Counter

MOST_DIGITS = 308
"""Digits of a whole number: one more may be above the greatest float."""

MOST_CHARACTERS = 16 * 2**20
MOST_VALUES = 500_000
"""Commas and opening brackets of a text; there is at most one value for each."""


def parse_json(text: str, *, may_repeat: bool = False, times_larger: int = 1) -> object:
    """Parse JSON.

    ``may_repeat``: of a key that comes twice the last one counts, for files of tools that do so.
    ``times_larger``: bounds over the usual ones, for files such as traces of profilers.

    Raises
    ------
    ValueError
        If it is empty or not JSON, naming the line; if a key is given twice in one object, the
        nesting is too deep, there are too many values, or a whole number is none of a float.
    """
    if len(text) > (most := MOST_CHARACTERS * times_larger):
        raise ValueError(f"must have at most {most} characters, got {len(text)}")
    if not text.strip():
        raise ValueError("not readable as JSON: the file is empty")
    num_values = sum(map(text.count, ",[{"))
    if num_values > (most := MOST_VALUES * times_larger):
        raise ValueError(f"must hold at most {most} values, got about {num_values}")
    try:
        content: object = json.loads(
            text,
            object_pairs_hook=dict if may_repeat else _unique_keys,
            parse_int=_whole_number,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"not readable as JSON in line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError("not readable as JSON: nested too deeply") from error
    return content


def require_digits(digits: str) -> str:
    """Return a whole number as it is written, unless it may be above the greatest float.

    Raises
    ------
    ValueError
        If it has too many digits.
    """
    if len(digits) > MOST_DIGITS:
        raise ValueError(
            f"a whole number must have at most {MOST_DIGITS} digits, got {digits[:10]}... with "
            f"{len(digits)}"
        )
    return digits


def _whole_number(digits: str) -> int:
    return int(require_digits(digits))


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twice[:100]!r} must be given once")
    return content
