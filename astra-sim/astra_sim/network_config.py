"""ASTRA-sim's ``network.yml``: the dimensions of a logical topology, read and checked."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

TopologyName = Literal["Ring", "FullyConnected", "Switch"]

BYTES_PER_GB = 2**30
"""A GB in ``network.yml`` is 2**30 bytes, although ``system.json`` means 10**9."""

NS_PER_S = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One dimension of the network: ``num_npus`` neighbours joined in one pattern."""

    topology: TopologyName
    num_npus: int
    bandwidth_gb_per_s: float
    latency_ns: float

    def __post_init__(self) -> None:
        if self.topology not in get_args(TopologyName):
            allowed = ", ".join(get_args(TopologyName))
            raise ValueError(f"topology: must be one of {allowed}; got {self.topology!r}")
        if self.num_npus < 2:
            raise ValueError(f"npus_count: must be at least 2, got {self.num_npus!r}")
        if not 0 < self.bandwidth_gb_per_s < math.inf:
            raise ValueError(
                f"bandwidth: must be positive and finite, got {self.bandwidth_gb_per_s!r}"
            )
        if not 0 <= self.latency_ns < math.inf:
            raise ValueError(f"latency: must be finite and not negative, got {self.latency_ns!r}")

    @property
    def bytes_per_ns(self) -> float:
        """Serialisation rate of a link; a product, then a quotient, as the last bit matters."""
        return self.bandwidth_gb_per_s * BYTES_PER_GB / NS_PER_S

    def num_hops(self, source: int, target: int) -> int:
        """Links between two places of this dimension: the shorter way round on a ring."""
        if source == target:
            return 0
        if self.topology == "Ring":
            clockwise = (target - source) % self.num_npus
            return min(clockwise, self.num_npus - clockwise)
        return 2 if self.topology == "Switch" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """A whole network; dimension 0 varies fastest in the number of an NPU."""

    dimensions: tuple[Dimension, ...]

    @property
    def num_npus(self) -> int:
        """NPUs of all dimensions together."""
        return math.prod(dimension.num_npus for dimension in self.dimensions)

    def address(self, npu: int) -> tuple[int, ...]:
        """Place of an NPU in every dimension.

        Raises
        ------
        ValueError
            If there is no such NPU.
        """
        if not 0 <= npu < self.num_npus:
            raise ValueError(f"npu: must be within [0, {self.num_npus}), got {npu}")
        places = []
        for dimension in self.dimensions:
            npu, place = divmod(npu, dimension.num_npus)
            places.append(place)
        return tuple(places)


def unaware_message_ns(network: NetworkConfig, source: int, target: int, num_bytes: int) -> int:
    """Time of one message in the congestion-unaware network, where none disturbs another. [ns]

    ``floor(hops * latency + bytes / rate)`` of the lowest dimension in which the addresses differ;
    the other dimensions are ignored, and bytes are serialised once however many hops there are.

    Raises
    ------
    ValueError
        If the two are the same NPU, or one does not exist.

    Examples
    --------
    >>> ring = Dimension(topology="Ring", num_npus=4, bandwidth_gb_per_s=50.0, latency_ns=500.0)
    >>> unaware_message_ns(NetworkConfig(dimensions=(ring,)), 0, 2, 2**20)
    20531
    """
    places = zip(network.dimensions, network.address(source), network.address(target), strict=True)
    for dimension, here, there in places:
        if here != there:
            wire_ns = num_bytes / dimension.bytes_per_ns
            return math.floor(dimension.num_hops(here, there) * dimension.latency_ns + wire_ns)
    raise ValueError(f"message: source and target must differ, got {source} twice")


def read_network_config(path: str | Path) -> NetworkConfig:
    """Read a ``network.yml``: four lists of equal length, one entry a dimension.

    Other keys are ignored, as ASTRA-sim ignores them.

    Raises
    ------
    ValueError
        If the file cannot be read or a list is missing, of another length or holds a wrong value;
        the message names the file and the field.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: network file cannot be read: {reason}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: must be a mapping, got {content!r}")
    try:
        return NetworkConfig(dimensions=_dimensions(content))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _dimensions(content: dict[str, Any]) -> tuple[Dimension, ...]:
    names = _list_of(content, "topology")
    counts, bandwidths, latencies = (
        _list_of(content, field) for field in ("npus_count", "bandwidth", "latency")
    )
    lengths = {len(names), len(counts), len(bandwidths), len(latencies)}
    if lengths == {0} or len(lengths) != 1:
        raise ValueError(
            "topology, npus_count, bandwidth, latency: must be lists of one equal length, got "
            f"{len(names)}, {len(counts)}, {len(bandwidths)} and {len(latencies)} entries"
        )
    return tuple(
        Dimension(
            topology=name,
            num_npus=_whole_number(count),
            bandwidth_gb_per_s=_number("bandwidth", bandwidth),
            latency_ns=_number("latency", latency),
        )
        for name, count, bandwidth, latency in zip(
            names, counts, bandwidths, latencies, strict=True
        )
    )


def _list_of(content: dict[str, Any], field: str) -> list[Any]:
    value = content.get(field)
    if not isinstance(value, list):
        raise ValueError(f"{field}: must be a list, got {value!r}")
    return value


def _whole_number(value: object) -> int:
    """Read a count; a quoted one is fine, 4.0 is not."""
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError(f"npus_count: must be a whole number, got {value!r}")
    return int(str(value))


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{field}: must be a number, got {value!r}")
    try:
        return float(value)
    except ValueError as error:
        raise ValueError(f"{field}: must be a number, got {value!r}") from error
