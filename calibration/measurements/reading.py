"""One value that a file of measurements holds, in SI units, and where it is from."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from des.base.checks import require_count, require_fraction, require_non_negative, require_positive

Quantity = Literal[
    "bandwidth",
    "round_trip",
    "jitter",
    "loss",
    "rate_at_least",
    "traffic",
    "gpu_load",
    "bus_bandwidth",
    "collective",
    "step",
    "server",
]
"""Bandwidth, round trip, jitter and loss of a link; a rate that a sender limited itself to; traffic
of a host; load of its GPUs; bus bandwidth, and time of a small collective; time of a training step;
GPUs of a server."""

UNITS: Mapping[Quantity, str] = MappingProxyType(
    {
        "bandwidth": "bytes/s",
        "round_trip": "s",
        "jitter": "s",
        "loss": "share",
        "rate_at_least": "bytes/s",
        "traffic": "bytes/s",
        "gpu_load": "share",
        "bus_bandwidth": "bytes/s",
        "collective": "s",
        "step": "s",
        "server": "GPUs",
    }
)

_MAY_BE_ZERO = ("jitter", "loss", "traffic", "gpu_load")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One measured value.

    Attributes
    ----------
    file, format
        Path of the file, and what it was recognised as.
    what, value
        Quantity, and its value in the unit of `UNITS`.
    samples, spread
        Number of single values that it is of, and the distance of their quartiles, or the standard
        deviation that the tool printed, in the same unit; None where there is one value alone.
    source, target
        Host names or addresses as the file has them; empty where it does not name them.
    hosts
        All hosts of a collective or a run, in the order of their ranks.
    source_site, target_site
        Sites of the two ends, see `calibration.measurements.sites`; the same for what is inside a
        site; empty where none is known.
    time_s
        Seconds since 1970 at the start; None where the file does not tell.
    series
        Single values by their seconds after the start, or times of a collective by bytes.
    facts
        Circumstances by name, such as streams, ranks or a trainer's arguments.
    note
        What a reader of the value should know, in words.
    """

    file: str
    format: str
    what: Quantity
    value: float
    samples: int = 1
    spread: float | None = None
    source: str = ""
    target: str = ""
    hosts: tuple[str, ...] = ()
    source_site: str = ""
    target_site: str = ""
    time_s: float | None = None
    series: tuple[tuple[float, float], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.what not in get_args(Quantity):
            raise ValueError(f"{self.file}: what must be one of {', '.join(get_args(Quantity))}")
        check = require_non_negative if self.what in _MAY_BE_ZERO else require_positive
        check(self.file, self.what, self.value)
        if self.what in ("loss", "gpu_load") and self.value:
            require_fraction(self.file, self.what, self.value)
        require_count(self.file, "samples", self.samples)
        if self.spread is not None:
            require_non_negative(self.file, f"spread of {self.what}", self.spread)

    @property
    def unit(self) -> str:
        """Unit of the value and its spread."""
        return UNITS[self.what]

    @property
    def link(self) -> tuple[str, str] | None:
        """Two sites that the value is of; None inside one site or where sites are not known."""
        ends = self.source_site, self.target_site
        return ends if all(ends) and ends[0] != ends[1] else None

    def fact(self, name: str) -> str | None:
        """Circumstance of a name; None if the file does not have it."""
        return dict(self.facts).get(name)
