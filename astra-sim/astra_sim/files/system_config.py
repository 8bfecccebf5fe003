"""ASTRA-sim's ``system.json``: what a system does locally and how its collectives are run."""

import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from astra_sim.base.values import dataclass, field
from astra_sim.files.algorithm import Algorithm
from astra_sim.files.errors import AbortError, AstraSimError
from astra_sim.files.execution_trace import CollectiveType
from astra_sim.files.json_fields import (
    JsonFields,
    Warn,
    read_json_fields,
    require_not_negative,
    require_whole,
    shown,
)

__all__ = [
    "Algorithm",
    "SharedBusConfig",
    "SystemConfig",
    "read_system_config",
]

CollectiveOptimization = Literal["baseline", "localBWAware"]
SchedulingPolicy = Literal["LIFO", "FIFO", "EXPLICIT"]

INT_BITS = 31
"""Bits of a whole number in the original, without its sign."""

DEFAULT_ENDPOINT_DELAY_NS = 10
"""Holds where the file names none, and is not scaled."""

IMPLEMENTATION_KEYS = {
    "all_reduce": "all-reduce-implementation",
    "all_gather": "all-gather-implementation",
    "reduce_scatter": "reduce-scatter-implementation",
    "all_to_all": "all-to-all-implementation",
}
"""Key of each collective's list of algorithms, by the name of its field."""

CUSTOM_KEYS = (
    *(f"{key}-custom" for key in IMPLEMENTATION_KEYS.values()),
    "per-node-custom-implementation",
)
KEYS_WITHOUT_EFFECT = (
    "boost-mode",
    "intra-dimension-scheduling",
    "inter-dimension-scheduling",
    "trace-enabled",
)
BUS_KEYS = ("L", "o", "g", "G")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBusConfig:
    """The LogGP parameters of a modelled local bus: ``L``, ``o``, ``g`` and ``G`` of the file."""

    latency_ns: int = 0
    overhead_ns: int = 0
    gap_ns: int = 0
    gap_ns_per_byte: float = 0.0
    local_reduction_delay: int = 1

    def __post_init__(self) -> None:
        require_whole("L", self.latency_ns, 0, INT_BITS)
        require_whole("o", self.overhead_ns, 0, INT_BITS)
        require_whole("g", self.gap_ns, 0, INT_BITS)
        require_not_negative("G", self.gap_ns_per_byte)
        require_whole("local-reduction-delay", self.local_reduction_delay, 0, INT_BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemConfig:
    """A whole system; the defaults are those of the file, whose keys the errors name.

    An ``endpoint_delay_ns`` of None is one that the file does not give; ``communication_slots``
    of None means no limit. ``source`` is the file, for messages.
    """

    scheduling_policy: SchedulingPolicy | None = None
    collective_optimization: CollectiveOptimization | None = None
    preferred_dataset_splits: int = 0
    active_chunks_per_dimension: int = 1
    endpoint_delay_ns: int | None = None
    all_reduce: tuple[Algorithm, ...] = ()
    all_gather: tuple[Algorithm, ...] = ()
    reduce_scatter: tuple[Algorithm, ...] = ()
    all_to_all: tuple[Algorithm, ...] = ()
    local_mem_bw_gb_per_s: float = 0.0
    peak_perf_tflops: float = 0.0
    roofline_enabled: bool = False
    replay_only: bool = False
    track_local_mem: bool = False
    shared_bus: SharedBusConfig | None = None
    communication_slots: int | None = 1
    source: str = field(default="system", compare=False)

    def __post_init__(self) -> None:
        self._require_one_of("scheduling-policy", self.scheduling_policy, SchedulingPolicy)
        self._require_one_of(
            "collective-optimization", self.collective_optimization, CollectiveOptimization
        )
        for key, value, at_least, num_bits in (
            ("preferred-dataset-splits", self.preferred_dataset_splits, 0, INT_BITS),
            ("active-chunks-per-dimension", self.active_chunks_per_dimension, 0, INT_BITS),
            ("endpoint-delay", self.endpoint_delay_ns, 0, INT_BITS),
            ("communication-slots", self.communication_slots, 1, None),
        ):
            if value is not None:
                require_whole(f"{self.source}: {key}", value, at_least, num_bits)
        require_not_negative(f"{self.source}: local-mem-bw", self.local_mem_bw_gb_per_s)
        require_not_negative(f"{self.source}: peak-perf", self.peak_perf_tflops)
        for name, key in IMPLEMENTATION_KEYS.items():
            for algorithm in getattr(self, name):
                if not isinstance(algorithm, Algorithm):
                    raise AstraSimError(
                        f"{self.source}: {key}: must be Algorithms, got {shown(algorithm)}"
                    )

    @property
    def algorithms(self) -> dict[CollectiveType, tuple[Algorithm, ...]]:
        """Algorithms of each kind of collective."""
        return {CollectiveType[name.upper()]: getattr(self, name) for name in IMPLEMENTATION_KEYS}

    def _require_one_of(self, key: str, value: str | None, allowed: object) -> None:
        if value is not None and value not in get_args(allowed):
            raise AstraSimError(
                f"{self.source}: {key}: must be one of {', '.join(get_args(allowed))}; "
                f"got {shown(value)}"
            )

    def endpoint_delay(self, injection_scale: float) -> int:
        """Time of a local move; the scale applies only to a delay that the file gives. [ns]

        Raises
        ------
        AbortError
            If the scaled delay is 2^31 ns or more.
        """
        if self.endpoint_delay_ns is None:
            return DEFAULT_ENDPOINT_DELAY_NS
        delay_ns = int(min(self.endpoint_delay_ns * injection_scale, 2.0**64))
        require_whole(f"{self.source}: endpoint-delay x injection-scale", delay_ns, 0, INT_BITS)
        return delay_ns

    def check_dimensions(self, num_dimensions: int) -> None:
        """Refuse lists of algorithms that are longer than the network has dimensions.

        Raises
        ------
        AbortError
            If one is; a shorter one leaves the other dimensions out.
        """
        for name, key in IMPLEMENTATION_KEYS.items():
            algorithms: tuple[Algorithm, ...] = getattr(self, name)
            if len(algorithms) > num_dimensions:
                raise AbortError(
                    f"{self.source}: {key}: must have at most one entry for each of the network's "
                    f"{num_dimensions} dimensions, got {len(algorithms)}"
                )


def read_system_config(path: str | Path, warn: Warn = warnings.warn) -> SystemConfig:
    """Read a ``system.json``; ``warn`` gets the keys that mean nothing.

    Raises
    ------
    AstraSimError
        If the file cannot be read, or names an unknown policy or algorithm or a custom one, which
        are not modelled.
    AbortError
        If it is no JSON object or a value is of a wrong type.
    """
    fields = read_json_fields(path, kind="system")
    for key in CUSTOM_KEYS:
        if key in fields.content:
            raise AstraSimError(
                f"{fields.source}: {key}: custom collectives are not modelled, "
                f"got {shown(fields.content[key])}"
            )
    fields.warn_of_others(KEYS, warn)
    values = {name: read(fields, key) for name, (key, read) in _FIELDS.items()}
    return SystemConfig(**values, source=fields.source)


def _algorithms(fields: JsonFields, key: str) -> tuple[Algorithm, ...]:
    texts = fields.texts(key)
    try:
        return tuple(Algorithm.parse(text) for text in texts)
    except AstraSimError as error:
        raise type(error)(f"{fields.source}: {key}: {error}") from error


def _read_shared_bus(fields: JsonFields, key: str) -> SharedBusConfig | None:
    """Read the bus; its figures are checked even where it is off, as any other field is."""
    latency, overhead, gap, gap_per_byte = (_single_precision(fields, one) for one in BUS_KEYS)
    local_reduction_delay = fields.whole("local-reduction-delay", 1)
    try:
        bus = SharedBusConfig(
            latency_ns=int(latency),
            overhead_ns=int(overhead),
            gap_ns=int(gap),
            gap_ns_per_byte=gap_per_byte,
            local_reduction_delay=local_reduction_delay,
        )
    except AbortError as error:
        raise AbortError(f"{fields.source}: {error}") from error
    is_on = fields.content.get(key, 0)
    if not isinstance(is_on, bool):
        is_on = fields.whole(key, 0) == 1
    return bus if is_on else None


def _single_precision(fields: JsonFields, key: str) -> float:
    """Read a number and round it to single precision, as the original keeps it."""
    value = fields.number(key, 0.0)
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        fields.refuse(key, "a number of single precision")
    return float(rounded)


def _communication_slots(fields: JsonFields, key: str) -> int | None:
    """Read an extension of ours: how many communication nodes of a rank may be under way."""
    return None if fields.content.get(key) == "unlimited" else fields.whole(key, 1)


def _endpoint_delay_ns(fields: JsonFields, key: str) -> int | None:
    return fields.whole(key, 0) if key in fields.content else None


def _number(fields: JsonFields, key: str) -> float:
    return fields.number(key, 0.0)


_FIELDS: dict[str, tuple[str, Callable[[JsonFields, str], Any]]] = {
    "scheduling_policy": ("scheduling-policy", JsonFields.text),
    "collective_optimization": ("collective-optimization", JsonFields.text),
    "preferred_dataset_splits": (
        "preferred-dataset-splits",
        lambda fields, key: fields.whole(key, 0),
    ),
    "active_chunks_per_dimension": (
        "active-chunks-per-dimension",
        lambda fields, key: fields.whole(key, 1),
    ),
    "endpoint_delay_ns": ("endpoint-delay", _endpoint_delay_ns),
    **{name: (key, _algorithms) for name, key in IMPLEMENTATION_KEYS.items()},
    "local_mem_bw_gb_per_s": ("local-mem-bw", _number),
    "peak_perf_tflops": ("peak-perf", _number),
    "roofline_enabled": ("roofline-enabled", JsonFields.switch),
    "replay_only": ("replay-only", JsonFields.switch),
    "track_local_mem": ("track-local-mem", JsonFields.switch),
    "shared_bus": ("model-shared-bus", _read_shared_bus),
    "communication_slots": ("communication-slots", _communication_slots),
}
"""Key of each field, and how it is read."""

KEYS = (
    *(key for key, _ in _FIELDS.values()),
    *BUS_KEYS,
    "local-reduction-delay",
    *KEYS_WITHOUT_EFFECT,
)
