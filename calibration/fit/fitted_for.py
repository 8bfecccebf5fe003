"""Provenance of correction factors, checked before use."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from des.job.precision import Precision
from des.job.workload import Workload
from des.world.access import OPEN
from des.world.packet_transport import LINE_RATE
from des.world.runtime import IDEAL
from des.world.topology import Topology

_DIGEST = re.compile("[0-9a-f]{64}")
_PRICES = ("gpu_price_usd_per_hour", "price_usd_per_gb")
_MEMORY_ALONE = ("replicated_activation_bytes", "replicated_input_bytes")
"""Fields of layers that no time of a fit depends on."""

_DECISIONS_ALONE = ("server",)
"""Fields of nodes that only decisions inside a domain depend on."""

_ADDED = {
    **dict.fromkeys(("kernels", "nodes", "profile", "site", "flow_cap_bytes_per_s", "hosts")),
    **dict.fromkeys(("gpu_kind", "rack_uplink_bytes_per_s")),
    "rack_latency_s": 0.0,
    "attention_share": 1.0,
    "graphs": "none",
    "hides_all_to_alls": False,
    "packets": asdict(LINE_RATE),
    "access": asdict(OPEN),
    "runtime": asdict(IDEAL),
}
"""Fields that were added, and what leaves digests as they were before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFor:
    """A model and a network: their names for people, their digests for comparison.

    Parameters
    ----------
    model, network
        Names; equal figures under another name are the same model or network.
    model_digest
        64 hexadecimal digits of all that a microbatch asks for: layers and messages. The number of
        microbatches is not part of it.
    network_digest
        The same of domains, links and the rules of transport. How links move and what they cost is
        not part of it, so snapshots of one network should be known by the network itself.
    """

    model: str
    model_digest: str
    network: str
    network_digest: str

    def __post_init__(self) -> None:
        for field in ("model_digest", "network_digest"):
            if not _DIGEST.fullmatch(getattr(self, field)):
                raise ValueError(
                    f"fitted_for: {field} must be 64 hexadecimal digits, "
                    f"got {getattr(self, field)!r}"
                )

    @classmethod
    def of(cls, workload: Workload, topology: Topology, *, network: str) -> "FittedFor":
        """Make the mark of a workload's model and of a network, which goes by a name."""
        return cls(
            model=workload.name,
            model_digest=_model_digest(workload),
            network=network,
            network_digest=_network_digest(topology, workload.precision),
        )

    def require_same(self, other: "FittedFor") -> None:
        """Refuse factors that were fitted for something else.

        Raises
        ------
        ValueError
            Naming what differs.
        """
        for field in ("model", "network"):
            fitted, given = (getattr(one, f"{field}_digest") for one in (self, other))
            if fitted != given:
                raise ValueError(
                    f"fitted_for.{field}: factors must be used for the {field} that they were "
                    f"fitted for, {getattr(self, field)} (digest {fitted[:12]}), "
                    f"got {getattr(other, field)} (digest {given[:12]})"
                )


def _model_digest(workload: Workload) -> str:
    return _digest(
        {
            "layers": [_numbers(asdict(layer)) for layer in workload.layers],
            "tokens_per_microbatch": float(workload.tokens_per_microbatch),
            "message_bytes": float(workload.message_bytes),
            **({} if workload.precision == "bf16" else {"precision": workload.precision}),
        }
    )


def _network_digest(topology: Topology, precision: Precision) -> str:
    domains = topology.domains
    if precision == "bf16":  # for which all is in the figures of its GPUs
        domains = tuple(replace(one, gpu_kind=None) for one in domains)
    return _digest(
        {
            "domains": [_numbers(asdict(domain)) for domain in domains],
            "links": [_numbers(asdict(link)) for link in topology.links],
            "transport": _numbers(asdict(topology.transport)),
        }
    )


def _numbers(figures: Mapping[str, object]) -> dict[str, object]:
    """Make all numbers floats, as 1 is 1.0; leave out prices, and fields added if unused."""
    return {
        name: _number(value)
        for name, value in figures.items()
        if name not in (*_PRICES, *_MEMORY_ALONE, *_DECISIONS_ALONE)
        and not (name in _ADDED and value == _ADDED[name])
        and not (name == "racks" and figures["rack_uplink_bytes_per_s"] is None)
    }


def _number(value: object) -> object:
    if isinstance(value, dict):
        return _numbers(value)
    return float(value) if isinstance(value, int | float) else value


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
