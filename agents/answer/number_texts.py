"""Figures for people: four digits, and units that keep them short."""

import math

DIGITS = 4
"""Significant digits of a figure in a page."""


def figure(number: float) -> str:
    """Write a number with four significant digits and no exponent.

    Examples
    --------
    >>> figure(0.0123456), figure(9.99996), figure(123456.0), figure(0.0)
    ('0.01235', '10.00', '123,500', '0')
    """
    if number == 0.0 or not math.isfinite(number):
        return f"{number:g}"
    rounded = float(f"{number:.{DIGITS - 1}e}")
    before = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, DIGITS - 1 - before)}f}"


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it.

    Examples
    --------
    >>> duration(9.12345), duration(600.0), duration(7.2e4), duration(1e6)
    ('9.123 s', '10.00 min', '20.00 h', '11.57 days')
    """
    for limit_s, length_s, unit in ((120.0, 1.0, "s"), (7200.0, 60.0, "min")):
        if abs(seconds) < limit_s:
            return f"{figure(seconds / length_s)} {unit}"
    if abs(seconds) < 172_800.0:
        return f"{figure(seconds / 3600.0)} h"
    return f"{figure(seconds / 86_400.0)} days"


def percent(share: float) -> str:
    """Write a share in percent, with a digit behind the point.

    Examples
    --------
    >>> percent(0.12345)
    '12.3 %'
    """
    return f"{100.0 * share:.1f} %"


def gbit_per_s(bytes_per_s: float) -> str:
    """Write a bandwidth.

    Examples
    --------
    >>> gbit_per_s(6.25e8)
    '5.000 Gbit/s'
    """
    return f"{figure(bytes_per_s * 8.0 / 1e9)} Gbit/s"


def gigabytes(num_bytes: float) -> str:
    """Write an amount of data in GB, without the unit.

    Examples
    --------
    >>> gigabytes(1.5e9)
    '1.500'
    """
    return figure(num_bytes / 1e9)
