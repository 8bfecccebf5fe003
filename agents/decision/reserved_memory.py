"""The network with the memory that other jobs leave."""

from dataclasses import replace

from agents.decision.situation import Situation
from des import Topology


def leave_reserved_memory(situation: Situation) -> Topology:
    """Return the network with the memory that other jobs leave."""
    if not situation.loads:
        return situation.topology
    domains = tuple(
        replace(domain, gpu_memory_bytes=domain.gpu_memory_bytes * (1.0 - load.memory_occupancy))
        for domain, load in zip(situation.topology.domains, situation.loads, strict=True)
    )
    return replace(situation.topology, domains=domains)
