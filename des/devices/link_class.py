"""Quality of the connection of two GPUs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkClass:
    """Quality of the connection of two GPUs, each way at once."""

    bandwidth_bytes_per_s: float
    latency_s: float
