"""Rules of the links while lanes run."""

import math

from des.compiled.kernels.lanes import (
    LaneRules,
)
from des.compiled.links import weather_fields
from des.world.topology import Topology


def rules_of(topology: Topology) -> LaneRules:
    """Return how all links behave while lanes run."""
    fields = weather_fields(topology)
    window_bytes = topology.transport.message_window_bytes
    return LaneRules(
        weather=fields["weather"],
        window_bytes=math.inf if window_bytes is None else float(window_bytes),
        interval_s=float(fields.get("interval_s", math.inf)),
        bandwidth_fluctuation=float(fields.get("bandwidth_fluctuation", 0.0)),
        latency_jitter=float(fields.get("latency_jitter", 0.0)),
    )
