"""ASTRA-sim's ``network.yml``: the dimensions of a logical topology, read and checked.

Two extensions: a dimension ``Pairwise`` takes ``bandwidth_matrix`` and ``latency_matrix``, and
``bandwidth_changes`` lists links that get another bandwidth at a known time.
"""

import math
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from astra_sim.base.values import dataclass
from astra_sim.files.dimensions import (
    AnyDimension,
    BandwidthChange,
    Dimension,
    PairwiseDimension,
    Pattern,
)
from astra_sim.files.errors import AbortError, AstraSimError, AstraSimUsageError
from astra_sim.files.json_fields import Warn, shown
from astra_sim.files.yaml_fields import is_null, list_of, number, read_yaml_mapping, whole_field

__all__ = [
    "AnyDimension",
    "BandwidthChange",
    "Dimension",
    "NetworkConfig",
    "PairwiseDimension",
    "read_network_config",
]

PAIRWISE = "Pairwise"
LISTS = ("topology", "npus_count", "bandwidth", "latency")
MATRICES = ("bandwidth_matrix", "latency_matrix")
CHANGES = "bandwidth_changes"
CHANGE_KEYS = ("time_ns", "dimension", "source", "target", "bandwidth")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """A whole network; dimension 0 varies fastest in the number of an NPU.

    ``bandwidth_changes`` are in order of time; of those at one time the last counts.
    """

    dimensions: tuple[AnyDimension, ...]
    bandwidth_changes: tuple[BandwidthChange, ...] = ()

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise AstraSimUsageError("network: must have at least one dimension, got none")
        for change in self.bandwidth_changes:
            self._check_change(change)
        for earlier, later in pairwise(self.bandwidth_changes):
            if earlier.time_ns > later.time_ns:
                raise AstraSimUsageError(
                    f"{CHANGES}: must be in order of time, got {later.time_ns} after "
                    f"{earlier.time_ns}"
                )

    def _check_change(self, change: BandwidthChange) -> None:
        if not 0 <= change.dimension < len(self.dimensions):
            raise AstraSimUsageError(
                f"{change}: dimension must be within [0, {len(self.dimensions)}), "
                f"got {change.dimension}"
            )
        dimension = self.dimensions[change.dimension]
        if change.source is None or change.target is None:
            return
        if not dimension.has_link(change.source, change.target):
            hint = f", whose switch is place {dimension.num_npus}"
            raise AstraSimUsageError(
                f"{change}: source and target must be joined by a link of {dimension.topology} "
                f"dimension {change.dimension}{hint if dimension.topology == 'Switch' else ''}; "
                f"got {change.source} and {change.target}"
            )

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

    def neighbours(self, npu: int, dimension: int) -> tuple[int, ...]:
        """NPUs that differ from one in no other dimension, itself included, in its order."""
        stride = math.prod(each.num_npus for each in self.dimensions[:dimension])
        size = self.dimensions[dimension].num_npus
        first = npu - npu // stride % size * stride
        return tuple(range(first, first + size * stride, stride))


def read_network_config(path: str | Path, warn: Warn = warnings.warn) -> NetworkConfig:
    """Read a ``network.yml``: four lists of equal length, one entry per dimension.

    ``warn`` gets other keys, which ASTRA-sim ignores. A ``Pairwise`` dimension has null in
    place of bandwidth and latency.

    Raises
    ------
    UsageError
        If a list is missing, of another length or holds a wrong value.
    AbortError
        If the file is no YAML mapping, or ``topology`` no list.
    AstraSimError
        If the file cannot be read.
    """
    content = read_yaml_mapping(path, kind="network")
    for key in content:
        if key not in (*LISTS, *MATRICES, CHANGES):
            warn(f"{path}: {key}: unknown key, ignored")
    try:
        dimensions = _dimensions(content)
        for key in MATRICES:
            if key in content and not any(each.topology == PAIRWISE for each in dimensions):
                warn(f"{path}: {key}: ignored, as no dimension is {PAIRWISE}")
        return NetworkConfig(dimensions=dimensions, bandwidth_changes=_bandwidth_changes(content))
    except AstraSimError as error:
        raise type(error)(f"{path}: {error}") from error


def _dimensions(content: dict[str, Any]) -> tuple[AnyDimension, ...]:
    topology = content.get("topology")
    if isinstance(topology, str) and not is_null(topology):
        raise AbortError(f"topology: must be a list, got {topology!r}")
    names = list_of(content, "topology")
    absent = [""] if names == [PAIRWISE] else None
    counts = list_of(content, "npus_count")
    bandwidths, latencies = (list_of(content, field, absent) for field in LISTS[2:])
    lengths = {len(names), len(counts), len(bandwidths), len(latencies)}
    if lengths == {0} or len(lengths) != 1:
        raise AstraSimUsageError(
            "topology, npus_count, bandwidth, latency: must be lists of one equal length, got "
            f"{len(names)}, {len(counts)}, {len(bandwidths)} and {len(latencies)} entries"
        )
    if names.count(PAIRWISE) > 1:
        raise AstraSimUsageError(f"topology: must be {PAIRWISE} once at most, got {shown(names)}")
    return tuple(
        _pairwise_dimension(content, count, bandwidth, latency)
        if name == PAIRWISE
        else Dimension(
            topology=cast(Pattern, name),
            num_npus=whole_field("npus_count", count),
            bandwidth_gb_per_s=number("bandwidth", bandwidth),
            latency_ns=number("latency", latency),
        )
        for name, count, bandwidth, latency in zip(
            names, counts, bandwidths, latencies, strict=True
        )
    )


def _pairwise_dimension(
    content: dict[str, Any], count: object, bandwidth: object, latency: object
) -> PairwiseDimension:
    for field, entry in (("bandwidth", bandwidth), ("latency", latency)):
        if not is_null(entry):
            raise AstraSimUsageError(
                f"{field}: must be null for a {PAIRWISE} dimension, whose {field}_matrix counts; "
                f"got {shown(entry)}"
            )
    num_npus = whole_field("npus_count", count)
    bandwidths, latencies = (_matrix(content, field, num_npus) for field in MATRICES)
    return PairwiseDimension(bandwidth_matrix_gb_per_s=bandwidths, latency_matrix_ns=latencies)


def _matrix(content: dict[str, Any], field: str, size: int) -> tuple[tuple[float, ...], ...]:
    """Read a square matrix; its diagonal, of no meaning, becomes 0."""
    rows = list_of(content, field)
    if len(rows) != size:
        raise AstraSimUsageError(
            f"{field}: must have a row for each of {size} places, got {len(rows)}"
        )
    matrix = []
    for source, row in enumerate(rows):
        owner = f"{field}: row {source}"
        if not isinstance(row, list):
            raise AstraSimUsageError(f"{owner}: must be a list, got {shown(row)}")
        matrix.append(
            tuple(
                0.0 if source == target else number(f"{owner}, column {target}", entry)
                for target, entry in enumerate(row)
            )
        )
    return tuple(matrix)


def _bandwidth_changes(content: dict[str, Any]) -> tuple[BandwidthChange, ...]:
    """Read the changes, in order of time; those of the same time in the order of the file."""
    changes = [
        _bandwidth_change(f"{CHANGES}: entry {number}", entry)
        for number, entry in enumerate(list_of(content, CHANGES, []))
    ]
    return tuple(sorted(changes, key=lambda change: change.time_ns))


def _bandwidth_change(owner: str, entry: object) -> BandwidthChange:
    if not isinstance(entry, dict):
        raise AstraSimUsageError(f"{owner}: must be a mapping, got {shown(entry)}")
    for key in entry:
        if key not in CHANGE_KEYS:
            raise AstraSimUsageError(
                f"{owner}: key must be one of {', '.join(CHANGE_KEYS)}; got {key!r}"
            )
    source, target = (
        None if is_null(entry.get(key)) else whole_field(f"{owner}: {key}", entry[key])
        for key in ("source", "target")
    )
    return BandwidthChange(
        time_ns=whole_field(f"{owner}: time_ns", entry.get("time_ns")),
        dimension=whole_field(f"{owner}: dimension", entry.get("dimension", "0")),
        source=source,
        target=target,
        bandwidth_gb_per_s=number(f"{owner}: bandwidth", entry.get("bandwidth")),
    )
