"""Quantities with units, such as ``"400Gbps"`` or ``"30ms"``, read into SI floats and written.

Decimal arithmetic keeps ``"500ns"`` and ``0.0005`` ms the same float.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

_LEAST, _MOST = 1e-15, 1e30

_NUMBER_AND_UNIT = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([^\s\d.]\S*)\s*")

_PREFIXES = {"": 0, "K": 3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Units of one kind of quantity: what each is worth in the base unit."""

    description: str
    worth: Mapping[str, Decimal]


def _prefixed(worth: dict[str, Decimal]) -> dict[str, Decimal]:
    return {
        prefix + unit: Decimal(10) ** exponent * value
        for prefix, exponent in _PREFIXES.items()
        for unit, value in worth.items()
    }


_BIT = Decimal(1) / 8
_BYTE = Decimal(1)

BANDWIDTH_BYTES_PER_S = Units(
    description="a bandwidth such as '5Gbps', '5Gbit/s' or '1.5GB/s' (K, M, G, T or P)",
    worth=_prefixed({"bps": _BIT, "bit/s": _BIT, "b/s": _BIT, "Bps": _BYTE, "B/s": _BYTE}),
)
"""Small b is bits, capital B bytes, K is 1000."""

TIME_S = Units(
    description="a time such as '30ms' (ns, us, µs, ms or s)",
    worth={
        "ns": Decimal("1e-9"),
        "us": Decimal("1e-6"),
        "\u00b5s": Decimal("1e-6"),  # micro sign
        "\u03bcs": Decimal("1e-6"),  # Greek mu
        "ms": Decimal("1e-3"),
        "s": Decimal(1),
    },
)

DURATION_S = Units(
    description="a duration such as '24h' (s, min, h or d)",
    worth={"s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)},
)

SIZE_BYTES = Units(
    description="a size such as '80GB' or '80GiB' (K, M, G, T or P)",
    worth=_prefixed({"B": _BYTE})
    | {f"{prefix}iB": Decimal(2) ** (10 * power) for power, prefix in enumerate("KMGTP", start=1)},
)

FLOPS_PER_S = Units(
    description="a compute speed such as '120TFLOP/s' or '120TFLOPS' (K, M, G, T or P)",
    worth=_prefixed({"FLOP/s": Decimal(1), "FLOPS": Decimal(1), "FLOPs": Decimal(1)}),
)

_TOKENS_OF_SUFFIX = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "B": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
}

_NUMBER_AND_SUFFIX = re.compile(r"\s*([0-9]+(?:[._][0-9]+)*)(k|M|B|T|Ki|Mi)?\s*")


def parse_tokens(text: str) -> int:
    """Convert a number of tokens, as digits or with a suffix, into tokens.

    Examples
    --------
    >>> parse_tokens("4M"), parse_tokens("0.5Mi"), parse_tokens("131072"), parse_tokens("15T")
    (4000000, 524288, 131072, 15000000000000)

    Raises
    ------
    ValueError
        If there is no number, an unknown suffix, or not a whole number of at least one token.
    """
    match = _NUMBER_AND_SUFFIX.fullmatch(text)
    try:
        number, suffix = ("", "") if match is None else match.groups(default="")
        tokens = Decimal(number) * _TOKENS_OF_SUFFIX[suffix]
        if tokens < 1 or tokens != int(tokens):
            raise ValueError("not a whole number")
    except (ArithmeticError, ValueError) as error:
        raise ValueError(
            "must be a whole number of tokens such as 131072, 4M or 512Ki "
            f"(k, M, B, T: powers of 1000; Ki, Mi: powers of 1024), got {text!r}"
        ) from error
    return int(tokens)


def parse_quantity(text: object, units: Units) -> float:
    """Convert a number with a unit into a float of the base unit.

    Examples
    --------
    >>> parse_quantity("5Gbps", BANDWIDTH_BYTES_PER_S)
    625000000.0
    >>> parse_quantity("500ns", TIME_S) == scale_number(0.0005, "ms", TIME_S)
    True

    Raises
    ------
    ValueError
        If there is no number, or no unit, or an unknown one.
    """
    match = _NUMBER_AND_UNIT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"must be {units.description}; got {text!r}")
    number, unit = match.groups()
    if unit not in units.worth:
        raise ValueError(f"unknown unit {unit!r}, must be {units.description}; got {text!r}")
    try:
        return float(Decimal(number) * units.worth[unit])
    except ArithmeticError as error:
        raise ValueError(f"must be {units.description}; got {text!r}") from error


def scale_number(number: float, unit: str, units: Units) -> float:
    """Convert a bare number of a known unit into a float of the base unit."""
    return float(Decimal(repr(number)) * units.worth[unit])


def require_in_reach(number: float, given: object) -> float:
    """Return a quantity of the base unit from which ratios and products stay finite, and not 0.

    Raises
    ------
    ValueError
        If it is further from 1 than anything that there is.
    """
    if 0 < abs(number) < _LEAST or _MOST < abs(number) < math.inf:  # inf has an error of its own
        raise ValueError(
            f"must be 0 or from {_LEAST:g} to {_MOST:g} in its unit without prefix; got {given!r}"
        )
    return number


def format_quantity(number: float, unit: str, units: Units) -> str:
    """Write a float of the base unit in a unit; `parse_quantity` reads the same float.

    Examples
    --------
    >>> format_quantity(625e6, "Gbps", BANDWIDTH_BYTES_PER_S)
    '5Gbps'
    >>> format_quantity(0.0305, "ms", TIME_S)
    '30.5ms'
    """
    # 17 decimal digits over a power of ten or an eighth of one: exact within Decimal's 28.
    in_unit = Decimal(repr(float(number))) / units.worth[unit]
    return f"{in_unit.normalize():f}{unit}"
