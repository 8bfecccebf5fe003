"""A backend: what judges plans in an environment in place of the simulator; here without latency.

One row of the entry-point group ``eastwest.backends`` makes it known to environments:
``gymnasium.make("EastWest/Placement-v0", backend="latency_free")``.
"""

from dataclasses import dataclass, replace

from des import Plan, Topology, Workload, simulate


@dataclass(frozen=True)
class FreeFigures:
    """FreeFigures that a backend measures. [s]"""

    makespan_s: float
    exposed_s: tuple[float, ...]


@dataclass(frozen=True)
class LatencyFree:
    """Simulates each plan on links without latency."""

    def check(self, topology: Topology, workload: Workload, plan: Plan) -> None:
        """Any plan that the simulator takes can be measured."""

    def measure(self, topology: Topology, workload: Workload, plan: Plan) -> FreeFigures:
        """Judge one iteration of a plan."""
        links = tuple(replace(link, latency_s=0.0) for link in topology.links)
        result = simulate(replace(topology, links=links), workload, plan)
        exposed_s = tuple(0.0 for _ in topology.domains)
        return FreeFigures(makespan_s=result.makespan_s, exposed_s=exposed_s)


def latency_free() -> LatencyFree:
    """Make the backend; options of this function are ``backend_options``."""
    return LatencyFree()
