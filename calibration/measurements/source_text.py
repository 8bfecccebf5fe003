"""Text of a file of measurements, with its JSON where it is some, and fields named in errors."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median, quantiles

from des.base.strict_json import parse_json
from des.base.text_files import read_text


@dataclass(frozen=True, kw_only=True)
class SourceText:
    """A file that was read whole."""

    path: Path
    text: str

    @property
    def is_json(self) -> bool:
        """Whether the text begins as objects of JSON do."""
        return re.match(r"\s*(\[\s*)?\{", self.text) is not None

    @cached_property
    def json(self) -> "JsonField":
        """Content, of objects on lines of their own a list; a `ValueError` where it is no JSON.

        Keys may come twice, as iperf3 repeats sizes of buffers for each of its streams.
        """
        text, lines = self.text, self.text.split("\n")
        if len(lines) > 1 and lines[0].startswith("{") and lines[1].startswith("{"):
            text = f"[{','.join(filter(None, lines))}]"
        try:
            return JsonField(file=str(self.path), name="", value=parse_json(text, may_repeat=True))
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}; is the file cut off?") from error

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Lines of the text."""
        return tuple(self.text.splitlines())

    def has_keys(self, *names: str) -> bool:
        """Whether it is a JSON object with some keys at its top."""
        if not self.is_json:
            return False
        value = self.json.value
        return isinstance(value, dict) and all(name in value for name in names)

    def number(self, field: str, text: str) -> float:
        """Number in the text of a field, which errors name."""
        try:
            return float(text.replace(",", ""))
        except ValueError as error:
            raise self.wrong(f"{field} must be a number, got {text:.40}") from error

    def wrong(self, message: str) -> ValueError:
        """Error that names the file."""
        return ValueError(f"{self.path}: {message}")


def source_text(path: Path) -> SourceText:
    """Read a file; a `ValueError` names one that cannot be read, or is empty."""
    text = read_text(path)
    if not text.strip():
        raise ValueError(f"{path}: must hold measurements, got an empty file")
    return SourceText(path=path, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonField:
    """A value in a JSON file by the names that lead to it."""

    file: str
    name: str
    value: object

    def get(self, *keys: str) -> "JsonField | None":
        """Field below this one; None where there is none."""
        value, name = self.value, self.name
        for key in keys:
            name = f"{name}.{key}" if name else key
            if not isinstance(value, dict) or value.get(key) is None:
                return None
            value = value[key]
        return JsonField(file=self.file, name=name, value=value)

    def at(self, *keys: str) -> "JsonField":
        """Field below this one, which must be there."""
        found = self.get(*keys)
        if found is None:
            name = ".".join((self.name, *keys) if self.name else keys)
            raise ValueError(f"{self.file}: {name} must be given, got none")
        return found

    def items(self) -> Iterator["JsonField"]:
        """Elements of a list, each with its index in its name."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for index, value in enumerate(self.value):
            yield JsonField(file=self.file, name=f"{self.name}[{index}]", value=value)

    def number(self) -> float:
        """Number, finite or not."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | str):
            raise self.wrong("a number")
        try:
            return float(self.value)
        except ValueError as error:
            raise self.wrong("a number") from error

    def positive(self) -> float:
        """Number above 0."""
        value = self.number()
        if not 0 < value < float("inf"):
            raise self.wrong("positive and finite")
        return value

    def non_negative(self) -> float:
        """Number of at least 0."""
        value = self.number()
        if not 0 <= value < float("inf"):
            raise self.wrong("finite and not negative")
        return value

    def text(self) -> str:
        """Text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.wrong("a text")
        return self.value

    def wrong(self, allowed: str) -> ValueError:
        """Error that names file and field."""
        return ValueError(f"{self.file}: {self.name} must be {allowed}, got {self.value!r:.80}")


def quartile_distance(values: list[float]) -> float | None:
    """Distance of the quartiles; None of one value.

    Examples
    --------
    >>> quartile_distance([1.0, 2.0, 3.0, 4.0, 5.0]), quartile_distance([1.0])
    (2.0, None)
    """
    if len(values) < 2:
        return None
    low, _, high = quantiles(values, n=4, method="inclusive")
    return high - low


def middle_of(values: list[float]) -> float:
    """Median."""
    return float(median(values))
