"""A backend: what judges plans in an environment in place of the simulator; here without latency.

One row of the entry-point group ``eastwest.backends`` makes it known to environments:
``gymnasium.make("EastWest/Placement-v0", backend="latency_free")``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from des import Plan, Topology, Workload, simulate


@dataclass(frozen=True)
class FreeFigures:
    """FreeFigures that a backend measures. [s]"""

    makespan_s: float
    exposed_s: tuple[float, ...]


@dataclass(frozen=True)
class LatencyFree:
    """Simulates each plan on links without latency."""

    def prepare(
        self, topology: Topology, workload: Workload, plan: Plan
    ) -> Callable[[], FreeFigures]:
        """Return what judges one iteration of a plan; any that the simulator takes can be."""
        links = tuple(replace(link, latency_s=0.0) for link in topology.links)
        judge = partial(simulate, replace(topology, links=links), workload, plan)
        exposed_s = (0.0,) * topology.num_domains
        return lambda: FreeFigures(makespan_s=judge().makespan_s, exposed_s=exposed_s)


def latency_free() -> LatencyFree:
    """Make the backend; options of this function are ``backend_options``."""
    return LatencyFree()
