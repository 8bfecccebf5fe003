"""Distances by hand and by another formula; the rules against what they were fitted to."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.worlds.geography import (
    EARTH_RADIUS_KM,
    LONGEST_ROUND_TRIP_S,
    Position,
    aws_bandwidth_bytes_per_s,
    great_circle_km,
    round_trip_s,
)

HALF_ROUND_KM = math.pi * EARTH_RADIUS_KM
GBIT_PER_S = 1e9 / 8


def at(latitude_deg: float, longitude_deg: float) -> Position:
    return Position(latitude_deg=latitude_deg, longitude_deg=longitude_deg)


def positions() -> st.SearchStrategy[Position]:
    return st.builds(at, st.floats(-90, 90), st.floats(-180, 180))


def unit_vector(position: Position) -> tuple[float, float, float]:
    north, east = math.radians(position.latitude_deg), math.radians(position.longitude_deg)
    return (
        math.cos(north) * math.cos(east),
        math.cos(north) * math.sin(east),
        math.sin(north),
    )


@pytest.mark.parametrize(
    ("one", "other", "km"),
    [
        (at(0, 0), at(0, 1), HALF_ROUND_KM / 180),
        (at(-30, 25), at(60, 25), HALF_ROUND_KM / 2),
        (at(90, 0), at(-90, 77), HALF_ROUND_KM),
        (at(60, -170), at(60, 170), 2 * EARTH_RADIUS_KM * math.asin(math.sin(math.pi / 18) / 2)),
    ],
    ids=["a degree of the equator", "a quarter of a meridian", "poles", "over the date line"],
)
def test_distances_by_hand(one, other, km):
    assert great_circle_km(one, other) == pytest.approx(km, rel=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "km"),
    [
        (at(39.90, 116.41), at(31.23, 121.47), 1067),  # Beijing, Shanghai
        (at(40.64, -73.78), at(51.47, -0.45), 5540),  # airports of New York and London
        (at(-33.95, 151.18), at(-33.97, 18.60), 11_000),  # airports of Sydney and Cape Town
    ],
)
def test_distances_of_cities_are_the_published_ones(one, other, km):
    assert great_circle_km(one, other) == pytest.approx(km, rel=0.006)


@given(one=positions(), other=positions())
def test_distance_is_the_angle_between_the_directions_from_the_centre(one, other):
    here, there = unit_vector(one), unit_vector(other)
    chord = math.dist(here, there)

    expected_km = EARTH_RADIUS_KM * 2 * math.asin(min(1.0, chord / 2))
    # Near antipodes an arc sine loses half of the digits, in both formulas.
    assert great_circle_km(one, other) == pytest.approx(expected_km, abs=1e-3)


@given(one=positions(), other=positions(), third=positions())
def test_distance_is_a_metric_on_the_sphere(one, other, third):
    direct_km = great_circle_km(one, other)

    assert great_circle_km(one, one) == 0.0
    assert direct_km == great_circle_km(other, one)
    assert 0.0 <= direct_km <= HALF_ROUND_KM
    detour_km = great_circle_km(one, third) + great_circle_km(third, other)
    assert direct_km <= detour_km + 1e-3


@pytest.mark.parametrize(
    ("latitude_deg", "longitude_deg", "message"),
    [
        (90.1, 0, r"position: latitude_deg must be within \[-90, 90\], got 90.1"),
        (math.nan, 0, "position: latitude_deg must be .* got nan"),
        (0, -181, r"position: longitude_deg must be within \[-180, 180\], got -181"),
        (0, math.inf, "position: longitude_deg must be .* got inf"),
    ],
)
def test_a_place_off_the_earth_is_refused(latitude_deg, longitude_deg, message):
    with pytest.raises(ValueError, match=message):
        at(latitude_deg, longitude_deg)


@pytest.mark.parametrize(
    ("distance_km", "ms"),
    [
        (0, 5.7),
        (1000, 22.8),  # 5.7 + 17.1
        (5000, 91.2),
        (5200, 91.2),  # not less than at 5000 km, though 5200 x 0.0173 = 89.96
        (8000, 138.4),  # 2 x 8000 / 200 x 1.73
    ],
)
def test_round_trips_by_hand(distance_km, ms):
    assert round_trip_s(distance_km) == pytest.approx(ms / 1e3, rel=1e-12)


@pytest.mark.parametrize(
    ("least_km", "most_km", "least_ms", "most_ms"),
    [(300, 1000, 8, 28), (1000, 2000, 22, 40), (2000, 3500, 31, 74), (3500, 5000, 59, 104)],
)
def test_round_trips_are_within_the_measured_bands(least_km, most_km, least_ms, most_ms):
    """The bands hold the measured pairs of these distances."""
    assert round_trip_s(least_km) * 1e3 >= least_ms
    assert round_trip_s(most_km) * 1e3 <= most_ms


@given(one=st.floats(0, HALF_ROUND_KM), other=st.floats(0, HALF_ROUND_KM))
def test_further_is_never_quicker_and_nothing_beats_light(one, other):
    near_km, far_km = sorted((one, other))

    assert round_trip_s(near_km) <= round_trip_s(far_km)
    assert round_trip_s(far_km) > 2 * far_km / 200e3  # light in fibre, 200 km a millisecond


@pytest.mark.parametrize("distance_km", [-1.0, math.inf, math.nan])
def test_an_impossible_distance_is_refused(distance_km):
    with pytest.raises(ValueError, match="distance rule: distance_km must be finite and not neg"):
        round_trip_s(distance_km)


@pytest.mark.parametrize(
    ("round_trip_ms", "gbit_per_s"),
    [(25, 4.66), (40, 4.58), (65, 4.35), (100, 4.02), (150, 3.59), (220, 3.00)],
)
def test_aws_bandwidth_is_that_of_the_measured_bands(round_trip_ms, gbit_per_s):
    """Means of the measured pairs whose round trips are around this one."""
    assert aws_bandwidth_bytes_per_s(round_trip_ms / 1e3) == pytest.approx(
        gbit_per_s * GBIT_PER_S, abs=0.05 * GBIT_PER_S
    )


@given(one=st.floats(0, LONGEST_ROUND_TRIP_S), other=st.floats(0, LONGEST_ROUND_TRIP_S))
def test_aws_bandwidth_falls_and_respects_the_egress_cap(one, other):
    quick_s, slow_s = sorted((one, other))

    slow, quick = aws_bandwidth_bytes_per_s(slow_s), aws_bandwidth_bytes_per_s(quick_s)
    assert 0 < slow <= quick < 5 * GBIT_PER_S


@pytest.mark.parametrize("round_trip", [-0.001, 0.406, math.inf, math.nan])
def test_aws_bandwidth_is_not_extrapolated(round_trip):
    with pytest.raises(ValueError, match="AWS bandwidth rule: round_trip_s must be at least 0"):
        aws_bandwidth_bytes_per_s(round_trip)


def test_no_place_is_too_far_for_the_bandwidth_rule():
    assert aws_bandwidth_bytes_per_s(round_trip_s(HALF_ROUND_KM)) > GBIT_PER_S
