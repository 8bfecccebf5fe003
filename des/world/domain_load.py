"""Load of a domain: the share of its GPUs and memory that other jobs take, and jobs that wait."""

from dataclasses import dataclass

from des.base.checks import require_non_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLoad:
    """Other jobs in a domain, as its own cluster manager reports them.

    Attributes
    ----------
    utilisation
        Share of its GPUs' time that other jobs take.
    memory_occupancy
        Share of its GPUs' memory that other jobs hold.
    queue_length
        Jobs that wait for it.
    """

    utilisation: float = 0.0
    memory_occupancy: float = 0.0
    queue_length: float = 0

    def __post_init__(self) -> None:
        for name in ("utilisation", "memory_occupancy"):
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise ValueError(f"domain load: {name} must be within [0, 1), got {value!r}")
        require_non_negative("domain load", "queue_length", self.queue_length)


IDLE = DomainLoad()
"""A domain without other jobs."""

LOADS_HELP = (
    "what other jobs take of domains: East=0.2/0.1/3, with commas between domains, is the share of "
    "GPU time, the share of memory and the jobs that wait; or a YAML or JSON file of these by "
    "domain; a domain that is not named is idle"
)
"""Forms of loads, for help texts of flags."""
