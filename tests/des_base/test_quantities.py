"""Quantities with units become SI floats, or errors that say what is allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.base.quantities import (
    BANDWIDTH_BYTES_PER_S,
    FLOPS_PER_S,
    SIZE_BYTES,
    TIME_S,
    format_quantity,
    parse_quantity,
    scale_number,
)


@pytest.mark.parametrize(
    ("text", "units", "value"),
    [
        ("400Gbps", BANDWIDTH_BYTES_PER_S, 50e9),  # 400e9 bits / 8
        ("5Gbit/s", BANDWIDTH_BYTES_PER_S, 625e6),
        ("1 Tb/s", BANDWIDTH_BYTES_PER_S, 125e9),
        ("800bps", BANDWIDTH_BYTES_PER_S, 100.0),
        ("1.5GB/s", BANDWIDTH_BYTES_PER_S, 1.5e9),
        ("1600GB/s", BANDWIDTH_BYTES_PER_S, 1.6e12),
        ("3MBps", BANDWIDTH_BYTES_PER_S, 3e6),
        ("2.5e3Mbps", BANDWIDTH_BYTES_PER_S, 312.5e6),
        (" 8 kbps ", BANDWIDTH_BYTES_PER_S, 1000.0),
        ("500ns", TIME_S, 5e-7),
        ("20us", TIME_S, 2e-5),
        ("20µs", TIME_S, 2e-5),
        ("30ms", TIME_S, 0.03),
        ("5s", TIME_S, 5.0),
        ("-5s", TIME_S, -5.0),  # signs are the caller's business
        ("0ms", TIME_S, 0.0),
        ("80GB", SIZE_BYTES, 80e9),
        ("80GiB", SIZE_BYTES, 80 * 1024.0**3),
        ("1TiB", SIZE_BYTES, 1024.0**4),
        ("7B", SIZE_BYTES, 7.0),
        ("120TFLOP/s", FLOPS_PER_S, 120e12),
        ("1.979PFLOPS", FLOPS_PER_S, 1.979e15),
    ],
)
def test_quantities_are_read_in_si(text, units, value):
    """The very float that Python reads for the number written out in the base unit."""
    assert parse_quantity(text, units) == value


def test_small_b_is_bits_and_capital_b_bytes():
    bits = parse_quantity("8Gbps", BANDWIDTH_BYTES_PER_S)
    in_bytes = parse_quantity("8GBps", BANDWIDTH_BYTES_PER_S)

    assert in_bytes == 8 * bits


@pytest.mark.parametrize("units", [BANDWIDTH_BYTES_PER_S, TIME_S, SIZE_BYTES, FLOPS_PER_S])
def test_every_prefix_that_the_description_promises_is_known(units):
    """The description lists the prefixes; with ``(K, M, G, T or P)`` both examples take them."""
    if "(K, M, G, T or P)" not in units.description:
        assert set(units.worth) == {"ns", "us", "\u00b5s", "\u03bcs", "ms", "s"}
        return
    stems = {unit[1:] for unit in units.worth if unit[0] in "KMGTP"}
    missing = {p + stem for stem in stems for p in "KMGTP"} - set(units.worth)

    assert not missing


@pytest.mark.parametrize("text", ["5", "Gbps", "", "nanGbps", "inf Gbps", "NaN", "five Gbps"])
def test_a_text_without_number_or_unit_is_refused(text):
    with pytest.raises(ValueError, match=r"must be a bandwidth such as '5Gbps'.*; got '" + text):
        parse_quantity(text, BANDWIDTH_BYTES_PER_S)


@pytest.mark.parametrize("value", [5, 5.0, None, ["5Gbps"], True])
def test_a_bare_value_is_refused(value):
    with pytest.raises(ValueError, match="must be a bandwidth such as '5Gbps'"):
        parse_quantity(value, BANDWIDTH_BYTES_PER_S)


@pytest.mark.parametrize(
    ("text", "unit"),
    [("5Gbs", "Gbs"), ("5 parsec", "parsec"), ("5Gib/s", "Gib/s"), ("5ms", "ms"), (".nan", "nan")],
)
def test_an_unknown_unit_is_named(text, unit):
    with pytest.raises(ValueError, match=f"unknown unit '{unit}', must be a bandwidth"):
        parse_quantity(text, BANDWIDTH_BYTES_PER_S)


@pytest.mark.parametrize("text", ["1.2.3s", "..s", "1e999999999999999999999s"])
def test_a_number_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="must be a time such as '30ms'"):
        parse_quantity(text, TIME_S)


def test_a_number_beyond_all_exponents_is_refused():
    """``ValueError``, not an arithmetic error of the decimal module."""
    with pytest.raises(ValueError, match="bandwidth"):
        parse_quantity("1e999999Gbps", BANDWIDTH_BYTES_PER_S)


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [(0.0005, "ms", "500ns"), (30, "ms", "30ms"), (0.1, "ms", "100us"), (0.3, "s", "300ms")],
)
def test_bare_numbers_equal_their_text(number, unit, text):
    """Both forms of a topology file give the same float."""
    assert scale_number(number, unit, TIME_S) == parse_quantity(text, TIME_S)


@given(number=st.floats(0.0, 1e6), unit=st.sampled_from(sorted(BANDWIDTH_BYTES_PER_S.worth)))
def test_both_readings_of_any_number_are_the_same_float(number, unit):
    text = f"{number!r}{unit}"

    expected = scale_number(number, unit, BANDWIDTH_BYTES_PER_S)
    assert parse_quantity(text, BANDWIDTH_BYTES_PER_S) == expected


@pytest.mark.parametrize(
    ("number", "unit", "units", "text"),
    [
        (625e6, "Gbps", BANDWIDTH_BYTES_PER_S, "5Gbps"),
        (1.6e12, "GB/s", BANDWIDTH_BYTES_PER_S, "1600GB/s"),
        (0.0305, "ms", TIME_S, "30.5ms"),
        (5e-7, "us", TIME_S, "0.5us"),
        (0.0, "ms", TIME_S, "0ms"),
        (80e9, "GB", SIZE_BYTES, "80GB"),
        (1.2e14, "TFLOP/s", FLOPS_PER_S, "120TFLOP/s"),
    ],
)
def test_quantities_are_written_without_exponents_and_zeros(number, unit, units, text):
    assert format_quantity(number, unit, units) == text


@given(
    number=st.floats(0, allow_infinity=False),
    unit=st.sampled_from(
        [
            ("Gbps", BANDWIDTH_BYTES_PER_S),
            ("GB/s", BANDWIDTH_BYTES_PER_S),
            ("ms", TIME_S),
            ("s", TIME_S),
            ("GB", SIZE_BYTES),
            ("TFLOP/s", FLOPS_PER_S),
        ]
    ),
)
def test_what_is_written_reads_back_to_the_last_bit(number, unit):
    name, units = unit

    assert parse_quantity(format_quantity(number, name, units), units) == number
