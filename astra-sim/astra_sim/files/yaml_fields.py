"""Typed fields of ASTRA-sim's YAML file, which is read as texts: quotes must not matter."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_sim.base.lazy import lazy
from astra_sim.files.errors import AbortError, AstraSimError, AstraSimUsageError
from astra_sim.files.json_fields import shown

if TYPE_CHECKING:
    import yaml
else:
    yaml = lazy("yaml")  # takes as long to load as the other modules of a command together

NULLS = (None, "", "~", "null", "Null", "NULL")
"""Values that count as absent."""

MOST_USUAL_BYTES = 2**24
"""Largest file of lists of plain words."""

_USUAL_BYTES = 2**16
"""Bytes of the first read, which takes as much memory, however short the file is."""

MOST_BYTES = 2**16
"""Largest file of another form; PyYAML takes a second for it."""

_WORD = "[A-Za-z0-9_.+][A-Za-z0-9_.+-]*"
_LIST_LINE = re.compile(
    rf"([A-Za-z_]{{1,64}}):(?: +\[ *({_WORD}(?: *, *{_WORD})*) *\])? *(?: #.*)?|( *)- +({_WORD}) *"
)
"""A key with its words in brackets, a key alone, or one word of a list below its key."""
_WHOLE = re.compile("0|[1-9][0-9]*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_yaml_mapping(path: str | Path, *, kind: str) -> dict[str, Any]:
    """Read a file that holds one mapping; all its scalars stay texts.

    Raises
    ------
    AstraSimError
        If the file cannot be read.
    AbortError
        If it is no YAML or no mapping.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(_USUAL_BYTES)
            if len(text) == _USUAL_BYTES:
                text += file.read(MOST_USUAL_BYTES + 1 - _USUAL_BYTES)
    except OSError as error:
        raise AstraSimError(f"{path}: {kind} file cannot be read: {error.strerror}") from error
    lists = plain_lists(text) if len(text) <= MOST_USUAL_BYTES else None
    if lists is not None:
        return lists
    if len(text) > MOST_BYTES:
        raise AbortError(
            f"{path}: {kind} file must have at most {MOST_BYTES} bytes, or be lists of plain "
            f"words, got {len(text)} bytes or more"
        )
    try:
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise AbortError(f"{path}: {kind} file is not YAML: {reason}") from error
    if not isinstance(content, dict):
        raise AbortError(f"{path}: {kind} file must hold a mapping, got {shown(content)}")
    return content


def plain_lists(text: bytes) -> dict[str, Any] | None:
    """Read the usual form, lists of plain words in brackets or line by line; None for others."""
    content: dict[str, Any] = {}
    words: list[str] = []
    indent: str | None = None
    for line in text.decode("ascii", "replace").split("\n"):
        found = _LIST_LINE.fullmatch(line)
        if not (line.isascii() and line.isprintable()):
            return None
        if found is None:
            if line.strip(" ") and not line.lstrip(" ").startswith("#"):
                return None
        elif found[1] is not None:
            words = content[found[1]] = found[2].replace(" ", "").split(",") if found[2] else []
            indent = None
        elif (words and indent is None) or indent not in (None, found[3]):
            return None
        else:
            indent = found[3]
            words.append(found[4])
    return content if content and all(content.values()) else None


def is_null(value: object) -> bool:
    """Whether a value is absent or says so."""
    return value in NULLS


def list_of(content: dict[str, Any], field: str, default: list[Any] | None = None) -> list[Any]:
    """Read a list; the default stands in for one that is absent."""
    value = content.get(field)
    if is_null(value):
        value = default
    if not isinstance(value, list):
        raise AstraSimUsageError(f"{field}: must be a list, got {shown(value)}")
    return value


def whole_field(field: str, value: object) -> int:
    """Read a whole number from 0 on; a quoted one is fine, 4.0 is not."""
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise AstraSimUsageError(f"{field}: must be a whole number, got {shown(value)}")
    return int(value)


def number(field: str, value: object) -> float:
    """Read a number, quoted or not."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise AstraSimUsageError(f"{field}: must be a number, got {shown(value)}")
    return float(value)
