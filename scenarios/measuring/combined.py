"""Several readings of one figure as one value: their median, and how far they are apart."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from calibration.measurements.reading import Quantity, Reading
from calibration.measurements.source_text import middle_of, quartile_distance


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Median of some readings; of a single one its own value and spread."""

    readings: tuple[Reading, ...]
    value: float
    spread: float | None

    @classmethod
    def of(
        cls,
        readings: Sequence[Reading],
        value_of: Callable[[Reading], float] = lambda one: one.value,
    ) -> Self:
        """Combine readings by what each says of the figure."""
        values = [value_of(one) for one in readings]
        first = readings[0]
        spread = quartile_distance(values)
        if len(readings) == 1 and first.spread is not None:
            spread = first.spread * values[0] / first.value if first.value else first.spread
        return cls(readings=tuple(readings), value=middle_of(values), spread=spread)

    @property
    def samples(self) -> int:
        """Number of single values of all readings."""
        return sum(one.samples for one in self.readings)


def bandwidths(readings: Iterable[Reading]) -> dict[tuple[str, str], Combined]:
    """Bandwidth of each direction between two sites. [bytes/s]"""
    return _by_link(one for one in readings if one.what == "bandwidth")


def latencies(readings: Iterable[Reading]) -> dict[tuple[str, str], Combined]:
    """Latency of both directions between two sites: half of the round trips either way. [s]

    Those with a note, such as under load, count only where there are no others.
    """
    found: dict[tuple[str, str], list[Reading]] = {}
    for one in readings:
        if one.what == "round_trip" and one.link is not None:
            found.setdefault(_either_way(one.link), []).append(one)
    return {
        ends: Combined.of(_measure(mine), lambda one: one.value / 2.0)
        for ends, mine in found.items()
    }


def of_pair(readings: Iterable[Reading], what: Quantity) -> dict[tuple[str, str], Combined]:
    """A figure that is the same both ways, such as the loss of a round trip."""
    return _by_link((one for one in readings if one.what == what), key=_either_way)


def _by_link(
    readings: Iterable[Reading],
    key: Callable[[tuple[str, str]], tuple[str, str]] = lambda ends: ends,
) -> dict[tuple[str, str], Combined]:
    found: dict[tuple[str, str], list[Reading]] = {}
    for one in readings:
        if one.link is not None:
            found.setdefault(key(one.link), []).append(one)
    return {ends: Combined.of(_measure(mine)) for ends, mine in found.items()}


def _measure(readings: list[Reading]) -> list[Reading]:
    """Readings without a note, if there are any."""
    return [one for one in readings if not one.note] or readings


def _either_way(ends: tuple[str, str]) -> tuple[str, str]:
    return min(ends), max(ends)
