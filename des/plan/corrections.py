"""Correction factors: what calibration found the simulator to be off by."""

from dataclasses import dataclass, fields

from des.base.checks import require_non_negative, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """Dimensionless factors on durations and link figures; the defaults correct nothing.

    Those on links inside domains and between them are applied in `des.costs.message_times` and
    nowhere else.
    """

    compute_time_factor: float = 1.0
    intra_bandwidth_factor: float = 1.0
    intra_latency_factor: float = 1.0
    wan_bandwidth_factor: float = 1.0
    wan_latency_factor: float = 1.0
    message_overhead_s: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "message_overhead_s":
                require_positive("corrections", field.name, getattr(self, field.name))
        require_non_negative("corrections", "message_overhead_s", self.message_overhead_s)


NO_CORRECTIONS = Corrections()
"""Leaves every figure as it is."""
