"""Typed fields of ASTRA-sim's JSON files; an error names the file, the key and what came."""

import json
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from astra_sim.base.values import dataclass
from astra_sim.files.errors import AbortError, AstraSimError

Warn = Callable[[str], None]
"""Takes a message about something that is odd but does no harm."""


def shown(value: object) -> str:
    """Show a value that was refused, shortened if it is long."""
    return reprlib.repr(value)


def require_whole(field: str, value: object, at_least: int, num_bits: int | None = None) -> None:
    """Refuse anything but a whole number from ``at_least`` on, in these bits of the original.

    Raises
    ------
    AbortError
        If it is another number or no number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise AbortError(
            f"{field}: must be a whole number of at least {at_least}, got {shown(value)}"
        )
    if num_bits is not None and value >= 2**num_bits:
        raise AbortError(
            f"{field}: must be less than 2^{num_bits} ({2**num_bits}), as the original cuts off "
            f"further bits, got {shown(value)}"
        )


def require_not_negative(field: str, value: float) -> None:
    """Refuse negative, infinite and not-a-number values.

    Raises
    ------
    AbortError
        If it is one of those.
    """
    if not 0 <= value < math.inf:  # NaN fails too
        raise AbortError(f"{field}: must be finite and not negative, got {shown(value)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFields:
    """The fields of one file; what is absent has a default, what is of a wrong type is refused.

    Numbers are not coerced from texts or truth values; where a whole number is wanted a fraction
    is cut off.
    """

    source: str
    content: Mapping[str, Any]

    def number(self, key: str, default: float) -> float:
        """Read a finite number."""
        value = self.content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, "a number")
        try:
            number = float(value)
        except OverflowError:  # an integer beyond all floats
            number = math.inf
        if not math.isfinite(number):
            self.refuse(key, "a finite number")
        return number

    def whole(self, key: str, default: int) -> int:
        """Read a whole number; a fraction is cut off."""
        value = self.content.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return math.trunc(self.number(key, default))

    def text(self, key: str) -> str | None:
        """Read a text; None if there is none."""
        value = self.content.get(key)
        if key in self.content and not isinstance(value, str):
            self.refuse(key, "a text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts; empty if there is none."""
        value = self.content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            self.refuse(key, "a list of texts")
        return tuple(value)

    def switch(self, key: str) -> bool:
        """Read a switch, which only the number zero turns off: false and "no" turn it on."""
        value = self.content.get(key, 0)
        return isinstance(value, bool) or not isinstance(value, int | float) or value != 0

    def refuse(self, key: str, allowed: str) -> NoReturn:
        """Refuse the value of a key because of its type.

        Raises
        ------
        AbortError
            Always.
        """
        raise AbortError(f"{self.source}: {key}: must be {allowed}, got {shown(self.content[key])}")

    def warn_of_others(self, known: Iterable[str], warn: Warn) -> None:
        """Say which keys are none of the known ones."""
        known = set(known)
        for key in self.content:
            if key not in known:
                warn(f"{self.source}: {key}: unknown key, ignored")


def read_json_fields(
    path: str | Path, *, kind: str, missing: type[AstraSimError] = AstraSimError
) -> JsonFields:
    """Read a file that holds one JSON object.

    Raises
    ------
    AstraSimError
        Of class ``missing``, if the file cannot be read.
    AbortError
        If it is no JSON or no object.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise missing(f"{path}: {kind} file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise AbortError(f"{path}: {kind} file is not UTF-8: {error}") from error
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise AbortError(f"{path}: {kind} file is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise AbortError(f"{path}: {kind} file must hold an object, got {shown(content)}")
    return JsonFields(source=str(path), content=content)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
