"""Checks of single fields; errors name the object, the field, what is allowed and what came."""

import difflib
import math
import reprlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral

LARGEST_COUNT = 10**9
"""Largest count accepted; more is taken for a typing error."""

MOST_ITEMS = 100_000
"""The same for counts of things that are held one by one: layers, microbatches, environments."""


@contextmanager
def prefixed_errors(prefix: str, kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Put what refused values are of before the message.

    Examples
    --------
    >>> with prefixed_errors("line 3: "):
    ...     require_count("job", "num_gpus", 0, 8)
    Traceback (most recent call last):
        ...
    ValueError: line 3: job: num_gpus must be a whole number from 1 to 8, got 0
    """
    try:
        yield
    except ValueError as error:
        raise kind(f"{prefix}{error}") from error


@contextmanager
def system_errors(failure: str, kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Say what failed, and the reason that the system gives."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure}: {error.strerror}") from error


def require_positive(owner: str, field: str, value: float) -> None:
    """Refuse zero, negative, infinite and not-a-number values."""
    if not 0 < value < math.inf:  # NaN fails too
        raise ValueError(f"{owner}: {field} must be positive and finite, got {value!r}")


def require_optional_positive(owner: str, field: str, value: float | None) -> None:
    """Refuse what `require_positive` refuses; None is allowed."""
    if value is not None:
        require_positive(owner, field, value)


def require_non_negative(owner: str, field: str, value: float) -> None:
    """Refuse negative, infinite and not-a-number values."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{owner}: {field} must be finite and not negative, got {value!r}")


def require_fraction(owner: str, field: str, value: float) -> None:
    """Refuse values outside (0, 1]."""
    if not 0 < value <= 1:
        raise ValueError(f"{owner}: {field} must be above 0 and at most 1, got {value!r}")


def require_swing(owner: str, field: str, value: float) -> None:
    """Refuse relative swings outside [0, 1): at 1 a bandwidth could reach zero."""
    if not 0 <= value < 1:
        raise ValueError(f"{owner}: {field} must be at least 0 and below 1, got {value!r}")


def require_seed(owner: str, field: str, value: int) -> None:
    """Refuse what random numbers by position cannot be keyed by, see `des.base.random_numbers`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(
            f"{owner}: {field} must be a whole number within [0, 2**63), got {reprlib.repr(value)}"
        )


def require_count(owner: str, field: str, value: int, most: int = LARGEST_COUNT) -> None:
    """Refuse anything but a whole number from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= most:
        raise ValueError(
            f"{owner}: {field} must be a whole number from 1 to {most}, got {reprlib.repr(value)}"
        )


def require_one_of(owner: str, field: str, value: object, allowed: Collection[object]) -> None:
    """Refuse values that are none of those allowed, which the message lists."""
    if value not in allowed:
        raise ValueError(
            f"{owner}: {field} must be one of {', '.join(map(str, allowed))}; got {value!r}"
        )


def require_known(
    refusal: str, name: object, names: Collection[str], kind: type[ValueError] = ValueError
) -> None:
    """Refuse a name that is none of those known; the message hints at the nearest."""
    if name not in names:
        raise kind(f"{refusal} {name!r}; {nearest(str(name), tuple(names))}")


def nearest(name: str, names: Sequence[str]) -> str:
    """Hint at the name that was probably meant, or list all names.

    Examples
    --------
    >>> nearest("bandwith", ["bandwidth", "latency"])
    "did you mean 'bandwidth'?"
    >>> nearest("colour", ["bandwidth", "latency"])
    'allowed are bandwidth, latency'
    """
    matches = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {matches[0]!r}?" if matches else f"allowed are {', '.join(names)}"
