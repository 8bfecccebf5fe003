"""Correction factors: what calibration found the simulator to be off by."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from des.base.checks import require_non_negative, require_positive
from des.plan.transport_law import TransportLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """Dimensionless factors on durations and link figures; the defaults correct nothing.

    Those on links inside domains and between them are applied in `des.costs.message_times` and
    nowhere else. ``transport`` delays messages between domains as TCP's start-up and losses do;
    None: links are ideal.
    """

    compute_time_factor: float = 1.0
    intra_bandwidth_factor: float = 1.0
    intra_latency_factor: float = 1.0
    wan_bandwidth_factor: float = 1.0
    wan_latency_factor: float = 1.0
    message_overhead_s: float = 0.0
    transport: TransportLaw | None = None

    def __post_init__(self) -> None:
        for name in FACTORS[:-1]:
            require_positive("corrections", name, getattr(self, name))
        require_non_negative("corrections", "message_overhead_s", self.message_overhead_s)
        if self.transport is not None and not isinstance(self.transport, TransportLaw):
            raise ValueError(
                f"corrections: transport must be a TransportLaw or None, got {self.transport!r}"
            )

    def plain(self) -> dict[str, Any]:
        """All fields by name, the law as a dict of its own; left out where there is none."""
        content = asdict(self)
        if self.transport is None:
            del content["transport"]
        return content

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> "Corrections":
        """Undo `plain`."""
        law = content.get("transport")
        return cls(**{**content, "transport": None if law is None else TransportLaw(**law)})

    def require_no_law(self, owner: str) -> None:
        """Refuse a law of the transport where times are worked out without one."""
        if self.transport is not None:
            raise ValueError(
                f"{owner}: corrections.transport must be none here, got {self.transport!r}"
            )


FACTORS = tuple(field.name for field in fields(Corrections) if field.name != "transport")
"""Numbers among the fields, in order: factors, and the overhead of a message last."""

NO_CORRECTIONS = Corrections()
"""Leaves every figure as it is."""
