"""Reading JSON in which a key given twice is an error, not a silent choice of the last one."""

import json


def parse_json(text: str) -> object:
    """Parse JSON.

    Raises
    ------
    ValueError
        If it is not JSON, naming the line; if a key is given twice in one object, or the nesting
        is too deep.
    """
    try:
        content: object = json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise ValueError(f"not readable as JSON in line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError("not readable as JSON: nested too deeply") from error
    return content


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} must be given once")
    return content
