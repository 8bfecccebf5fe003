"""Link figures from the distance between two places: estimates, not measurements.

All rules are fits to pairs of cloud regions, so they carry over to other operators only roughly.
"""

import math
from dataclasses import dataclass

from des.base.checks import require_non_negative

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth (IUGG)."""

LONGEST_FITTED_KM = 5000.0
"""Largest distance at which round trips follow the fitted line."""

LONGEST_ROUND_TRIP_S = 0.405
"""About the longest of the measured round trips, Sydney to Cape Town."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place on the Earth; north and east are positive."""

    latitude_deg: float
    longitude_deg: float

    def __post_init__(self) -> None:
        for field, most in (("latitude_deg", 90.0), ("longitude_deg", 180.0)):
            value = getattr(self, field)
            if not -most <= value <= most:  # NaN fails too
                raise ValueError(
                    f"position: {field} must be within [-{most:g}, {most:g}], got {value!r}"
                )


def great_circle_km(one: Position, other: Position) -> float:
    """Shortest distance over the surface of a round Earth, by the haversine formula. [km]

    Within 0.6 % of that over the ellipsoid.

    Examples
    --------
    >>> pole, equator = (Position(latitude_deg=at, longitude_deg=0.0) for at in (90.0, 0.0))
    >>> round(great_circle_km(pole, equator))
    10008
    """
    north, other_north = math.radians(one.latitude_deg), math.radians(other.latitude_deg)
    east = math.radians(other.longitude_deg - one.longitude_deg)
    haversine = (
        math.sin((other_north - north) / 2) ** 2
        + math.cos(north) * math.cos(other_north) * math.sin(east / 2) ** 2
    )
    # Between antipodes rounding can lead above 1, where there is no arc sine.
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(haversine)))


def round_trip_s(distance_km: float) -> float:
    """Round trip time between two data centres that far apart over the great circle. [s]

    Raises
    ------
    ValueError
        If the distance is negative or not finite.

    Notes
    -----
    Least squares over pairs of AWS regions below 5000 km, R^2 0.85: 5.7 ms + 0.0171 ms/km. Further
    apart the median stretch of 1.73 (10th and 90th percentile 1.37 and 2.48) over light in fibre,
    200 km/ms: 0.0173 ms/km, but never less than at 5000 km. Fitted to the 380 pairs in
    ``profiles/latency.csv`` of [1]_.

    References
    ----------
    .. [1] P. Jain et al., "Skyplane: optimizing transfer cost and throughput using cloud-aware
       overlays", NSDI'23; github.com/skyplane-project/skyplane.

    Examples
    --------
    >>> round(round_trip_s(1000.0), 6)
    0.0228
    >>> round(round_trip_s(10_000.0), 6)
    0.173
    """
    require_non_negative("distance rule", "distance_km", distance_km)
    near_ms = 5.7 + 0.0171 * min(distance_km, LONGEST_FITTED_KM)
    far_ms = 2 * distance_km / 200 * 1.73
    return max(near_ms, far_ms) / 1e3


def aws_bandwidth_bytes_per_s(round_trip_s: float) -> float:
    """Bandwidth between two AWS virtual machines in different regions. [bytes/s]

    Raises
    ------
    ValueError
        If the round trip is negative or longer than the measured ones.

    Notes
    -----
    ``4.905 - 0.00885 RTT`` Gbit/s with RTT in ms, standard deviation 0.094: the mean of 64 TCP
    flows over 5 s between 380 pairs, ``profiles/throughput.csv`` of January 2022 in [1]_. AWS lets
    5 Gbit/s out of such a machine, which the fit respects by itself; one TCP flow gets far less.

    References
    ----------
    .. [1] P. Jain et al., "Skyplane: optimizing transfer cost and throughput using cloud-aware
       overlays", NSDI'23; github.com/skyplane-project/skyplane.

    Examples
    --------
    >>> round(aws_bandwidth_bytes_per_s(0.1) * 8 / 1e9, 6)
    4.02
    """
    if not 0 <= round_trip_s <= LONGEST_ROUND_TRIP_S:
        raise ValueError(
            f"AWS bandwidth rule: round_trip_s must be at least 0 and at most "
            f"{LONGEST_ROUND_TRIP_S}, got {round_trip_s!r}"
        )
    return (4.905 - 0.00885 * (round_trip_s * 1e3)) * 1e9 / 8
