"""Key of a reference run: a digest of all that its result depends on."""

import hashlib
import json
import math
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from importlib.util import find_spec
from numbers import Integral, Real
from pathlib import Path

from calibration.cases.case import PlacementCase
from des.base.checks import system_errors
from des.world.access import OPEN
from des.world.nodes import Nodes
from des.world.packet_transport import LINE_RATE
from des.world.runtime import IDEAL

_FORMAT = 1
"""Part of every digest; raised where the same case is to get another one."""

_NOT_IN_A_RUN = frozenset(
    {"dynamics", "availability", "price_usd_per_gb", "gpu_price_usd_per_hour", "server"}
)
"""Fields of a topology that no run sees: its links stand still and have no prices, its sites are
there, and its servers have the inner figures of their domain."""

_LEFT_OUT_IF_NONE = frozenset(
    {
        *("nodes", "profile", "queue_products", "site", "flow_cap_bytes_per_s", "hosts"),
        *("attention", "rack_uplink_bytes_per_s"),
    }
)
"""Fields that came later: cases without them keep their digests."""

_LEFT_OUT_AT = {
    "shares": (),
    "tree": (),
    "sharded": False,
    "shares_domains": False,
    "chunks": 1,
    "chunk_order": "loop",
    "context": 1,
    "expert": 1,
    "expert_skew": 1.0,
    "whole_experts": False,
    "sequence_parallel": True,
    "gradient_precision": "bf16",
    "precision": "bf16",
    "attention_share": 1.0,
    "graphs": "none",
    "hides_all_to_alls": False,
    "behind_backward": True,
    "outer_state": "gpu",
    "sends": "overlapped",
    "stage_layers": (),
    "rack_latency_s": 0.0,
    "access": OPEN,
    "runtime": IDEAL,
}
"""Further such fields, and the values at which they change nothing."""

_OF_WHOLE_SEQUENCES = frozenset({"replicated_activation_bytes", "replicated_input_bytes"})
"""Fields on which a run depends only without sequence parallelism."""

_SOURCES = ("astra_sim", "calibration", "des")
"""Packages that a run of our engine passes through, from the case to the measurement."""


_NAMES = {"PlacementCase": "Case", "UniformLaw": "Dynamics"}
"""Names in a digest of classes that have others now: equal cases keep their digests."""


_OF_LAYER_TIMES = frozenset({"kernels", "shape"})
"""Fields on which a run depends only where layer times are made from shapes."""


_OF_LOW_PRECISION = frozenset({"gpu_kind"})
"""Fields on which a run depends only where passes are below 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """One run: the digest of its case, and what it was run by.

    ``aggregation`` says how a matrix of links became one link; None where it stayed a matrix.
    ``version`` is `engine_version` or `binary_version`.
    """

    case_digest: str
    backend: str
    aggregation: str | None
    version: str

    @property
    def digest(self) -> str:
        """64 hexadecimal digits; equal for equal keys alone."""
        parts = [_FORMAT, self.case_digest, self.backend, self.aggregation, self.version]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def case_key(case: PlacementCase, backend: str, aggregation: str | None, version: str) -> RunKey:
    """Make the key of a run of a case."""
    return RunKey(
        case_digest=case_digest(case), backend=backend, aggregation=aggregation, version=version
    )


def case_digest(case: PlacementCase) -> str:
    """64 hexadecimal digits, the same in every process, for equal cases alone.

    Equal are cases whose values are, numbers by value (1 is 1.0) and to the last bit. Prices and
    the law of links that stand still do not count, nor does what GPUs keep whole without sequence
    parallelism where no plan is without it.

    Raises
    ------
    ValueError
        If a number is NaN or infinite.
    """
    from_flops = all(domain.kernels is None for domain in case.topology.domains)
    left_out = _NOT_IN_A_RUN | (_OF_LAYER_TIMES if from_flops else frozenset())
    if case.workload.precision == "bf16":
        left_out |= _OF_LOW_PRECISION
    if all(one.sequence_parallel for one in case.plan.parallelism):
        left_out |= _OF_WHOLE_SEQUENCES
    content = [_FORMAT, _canonical(case, left_out)]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: object, left_out: frozenset[str]) -> object:
    """Make JSON of a value without some fields, with floats by their shortest exact text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Integral):  # also True, which equals 1
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"case: all numbers must be finite, got {number!r}")
        return int(number) if number.is_integer() else number
    if isinstance(value, tuple):
        return [_canonical(item, left_out) for item in value]
    assert is_dataclass(value), f"no part of a case: {value!r}"
    items = {
        name: _canonical(each, left_out)
        for name, each in (_as_before(one.name, getattr(value, one.name)) for one in fields(value))
        if name not in left_out
        and not (name in _LEFT_OUT_IF_NONE and each is None)
        and not (name in _LEFT_OUT_AT and each == _LEFT_OUT_AT[name])
        and not (isinstance(value, Nodes) and name == "racks" and not value.has_priced_racks)
        and not (name == "packets" and getattr(value, name) == LINE_RATE)
    }
    name = type(value).__name__
    return {"": _NAMES.get(name, name), **items}


def _as_before(name: str, value: object) -> tuple[str, object]:
    """Name and value of a field in a digest: those of the field that it has replaced."""
    if name == "sharding" and value in ("none", "optimiser"):
        return "shard_optimiser", value == "optimiser"
    return name, value


def describe_case(case: PlacementCase) -> dict[str, str | int | float]:
    """Figures by which people tell cases apart, and by which they are stratified."""
    stages = case.plan.stages
    most_layers = max(stage.num_layers for stage in stages)
    num_layers = case.workload.num_layers * len(case.plan.placements)
    return {
        "model": case.workload.name,
        "num_layers": case.workload.num_layers,
        "num_microbatches": case.workload.num_microbatches,
        "message_bytes": case.workload.message_bytes,
        "num_domains": case.topology.num_domains,
        "num_used_domains": len({stage.domain for stage in stages}),
        "num_crossings": sum(placement.num_borders for placement in case.plan.placements),
        "imbalance_factor": most_layers * len(stages) / num_layers,
        "schedule": case.plan.schedule,
        "parallelism": "; ".join(map(str, sorted(set(case.plan.parallelism), key=str))),
        "granularity": case.granularity,
        "placement": " | ".join(map(str, case.plan.placements)),
    }


@lru_cache(maxsize=1)
def engine_version() -> str:
    """Version of our own engine: a digest of all sources that its results depend on.

    It also covers the writers of its inputs, so no changed source meets runs of an earlier one.
    """
    return f"eastwest-{_sources_digest()[:16]}"


def binary_version(binary: str | Path) -> str:
    """Version of a program: a digest of its file, and of the sources that write its inputs.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    with system_errors(f"binary {binary}: cannot be read"), Path(binary).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"binary-{digest[:16]}-eastwest-{_sources_digest()[:16]}"


@lru_cache(maxsize=1)
def _sources_digest() -> str:
    digest = hashlib.sha256()
    for package in _SOURCES:
        found = find_spec(package)
        assert found is not None
        assert found.origin is not None
        folder = Path(found.origin).parent
        for path in sorted(folder.rglob("*.py")):
            name = f"{package}/{path.relative_to(folder).as_posix()}"
            content = path.read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
