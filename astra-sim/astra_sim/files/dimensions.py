"""Dimensions of a logical topology: how many places, joined how, by links of what figures."""

import math
from typing import Literal, get_args

from astra_sim.base.values import dataclass
from astra_sim.files.errors import AstraSimUsageError
from astra_sim.files.json_fields import shown

Pattern = Literal["Ring", "FullyConnected", "Switch"]

BYTES_PER_GB = 2**30
"""A GB in ``network.yml`` is 2**30 bytes, although ``system.json`` means 10**9."""

NS_PER_S = 10**9


def rate_bytes_per_ns(bandwidth_gb_per_s: float) -> float:
    """Serialisation rate of a bandwidth; a product, then a quotient, as the last bit matters."""
    return bandwidth_gb_per_s * BYTES_PER_GB / NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One dimension of the network: ``num_npus`` neighbours joined in one pattern by equal links.

    A link joins two places; the switch of a ``Switch`` is place ``num_npus``. Errors name the keys
    of the file.
    """

    topology: Pattern
    num_npus: int
    bandwidth_gb_per_s: float
    latency_ns: float

    def __post_init__(self) -> None:
        if self.topology not in get_args(Pattern):
            allowed = ", ".join(get_args(Pattern))
            raise AstraSimUsageError(
                f"topology: must be one of {allowed}, Pairwise; got {shown(self.topology)}"
            )
        if self.num_npus < 2:
            raise AstraSimUsageError(f"npus_count: must be at least 2, got {self.num_npus!r}")
        _require_bandwidth("bandwidth", self.bandwidth_gb_per_s)
        _require_latency("latency", self.latency_ns)

    @property
    def bytes_per_ns(self) -> float:
        """Serialisation rate of every link."""
        return rate_bytes_per_ns(self.bandwidth_gb_per_s)

    def link_bytes_per_ns(self, source: int, target: int) -> float:
        """Serialisation rate of the link from one place to another: that of them all."""
        return self.bytes_per_ns

    def link_latency_ns(self, source: int, target: int) -> float:
        """Latency of the link from one place to another: that of them all."""
        return self.latency_ns

    def has_link(self, source: int, target: int) -> bool:
        """Whether a link leads from one place straight to another."""
        size = self.num_npus
        if self.topology == "Switch":
            return 0 <= min(source, target) < max(source, target) == size
        if not (0 <= source < size and 0 <= target < size):
            return False
        distance = (target - source) % size
        return distance in (1, size - 1) if self.topology == "Ring" else distance > 0

    def num_hops(self, source: int, target: int) -> int:
        """Links between two places of this dimension: the shorter way round on a ring."""
        if source == target:
            return 0
        if self.topology == "Ring":
            clockwise = (target - source) % self.num_npus
            return min(clockwise, self.num_npus - clockwise)
        return 2 if self.topology == "Switch" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseDimension:
    """A dimension whose every ordered pair of places has a link of its own figures.

    Rows of both matrices are sources, columns targets; their diagonals count for nothing.
    """

    bandwidth_matrix_gb_per_s: tuple[tuple[float, ...], ...]
    latency_matrix_ns: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        size = self.num_npus
        if size < 2:
            raise AstraSimUsageError(f"bandwidth_matrix: must have at least 2 rows, got {size}")
        if len(self.latency_matrix_ns) != size:
            raise AstraSimUsageError(
                f"latency_matrix: must have {size} rows as bandwidth_matrix has, "
                f"got {len(self.latency_matrix_ns)}"
            )
        for field, matrix, check in (
            ("bandwidth_matrix", self.bandwidth_matrix_gb_per_s, _require_bandwidth),
            ("latency_matrix", self.latency_matrix_ns, _require_latency),
        ):
            for source, row in enumerate(matrix):
                if len(row) != size:
                    raise AstraSimUsageError(
                        f"{field}: row {source} must have {size} entries, got {len(row)}"
                    )
                for target, value in enumerate(row):
                    if source != target:
                        check(f"{field}: row {source}, column {target}", value)

    @property
    def topology(self) -> Literal["Pairwise"]:
        """Name in the file."""
        return "Pairwise"

    @property
    def num_npus(self) -> int:
        """Places that are joined."""
        return len(self.bandwidth_matrix_gb_per_s)

    def link_bytes_per_ns(self, source: int, target: int) -> float:
        """Serialisation rate of the link from one place to another."""
        return rate_bytes_per_ns(self.bandwidth_matrix_gb_per_s[source][target])

    def link_latency_ns(self, source: int, target: int) -> float:
        """Latency of the link from one place to another."""
        return self.latency_matrix_ns[source][target]

    def has_link(self, source: int, target: int) -> bool:
        """Whether a link leads from one place straight to another."""
        size = self.num_npus
        return 0 <= source < size and 0 <= target < size and source != target

    def num_hops(self, source: int, target: int) -> int:
        """Links between two places: the one of the pair."""
        return int(source != target)


AnyDimension = Dimension | PairwiseDimension


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthChange:
    """Change of bandwidth from ``time_ns`` on, for one directed link of a dimension or for all.

    ``source`` and ``target`` are the places that the link joins; None for both means all links.
    """

    time_ns: int
    dimension: int = 0
    source: int | None = None
    target: int | None = None
    bandwidth_gb_per_s: float

    def __post_init__(self) -> None:
        if self.time_ns < 0:
            raise AstraSimUsageError(f"{self}: time_ns must not be negative, got {self.time_ns}")
        if (self.source is None) != (self.target is None):
            raise AstraSimUsageError(
                f"{self}: source and target must both be given or neither, "
                f"got {self.source} and {self.target}"
            )
        _require_bandwidth(f"{self}: bandwidth", self.bandwidth_gb_per_s)

    def __str__(self) -> str:
        return f"bandwidth change at {self.time_ns} ns"

    @property
    def bytes_per_ns(self) -> float:
        """New serialisation rate."""
        return rate_bytes_per_ns(self.bandwidth_gb_per_s)


def _require_bandwidth(field: str, value: float) -> None:
    if not 0 < value < math.inf:  # NaN fails too
        raise AstraSimUsageError(f"{field}: must be positive and finite, got {value!r}")


def _require_latency(field: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise AstraSimUsageError(f"{field}: must be finite and not negative, got {value!r}")
