"""Threshold of change below which the plan in force stays without a question."""

from dataclasses import dataclass
from itertools import pairwise, permutations

from des import Plan, Topology, UnreachableError
from des.base.checks import require_non_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplanThreshold:
    """Relative change of a figure in use above which the scheduler decides again.

    In use are the domains that hold layers of a plan, and the links on the routes between
    neighbouring stages, both ways; with replicas, those between any two of its domains. Figures
    are bandwidth and latency of a link, and speed and memory of a domain as other jobs leave
    them. A change is the distance from the figure at the last question, over that figure.
    """

    share: float

    def __post_init__(self) -> None:
        require_non_negative("replan threshold", "share", self.share)

    def is_exceeded(self, plan: Plan, asked: Topology, now: Topology) -> bool:
        """Whether a figure in use has changed by more than the share since the last decision.

        True as well where the domains, or the links on a route, are no longer the same.

        Examples
        --------
        >>> from des import Placement, read_topology
        >>> import numpy as np
        >>> world = read_topology("east_central_west")
        >>> slower = world.scaled(np.full(6, 0.9), np.ones(6))
        >>> plan = Plan(placement=Placement.parse("0*4,1*4"))
        >>> [ReplanThreshold(share=share).is_exceeded(plan, world, slower) for share in (0.05, 0.2)]
        [True, False]
        """
        try:
            before, after = _figures(plan, asked), _figures(plan, now)
        except (UnreachableError, IndexError):
            return True
        return before.keys() != after.keys() or any(
            abs(after[name] - figure) > self.share * figure for name, figure in before.items()
        )


def _figures(plan: Plan, topology: Topology) -> dict[tuple[str, ...], float]:
    """Figures of domains and links that a plan uses, by their names."""
    found: dict[tuple[str, ...], float] = {}
    used = sorted({domain for one in plan.placements for domain in one.domain_of_layer})
    for domain in (topology.domains[number] for number in used):
        found[domain.name, "speed"] = domain.attainable_flops_per_s
        found[domain.name, "memory"] = domain.gpu_memory_bytes
    for ends in sorted(ways_in_use(plan)):
        for link in (topology.links[number] for number in topology.route(*ends)):
            found[link.source, link.target, "bandwidth"] = link.bandwidth_bytes_per_s
            found[link.source, link.target, "latency"] = link.latency_s
    return found


def ways_in_use(plan: Plan) -> set[tuple[int, int]]:
    """Pairs of domains between which a plan sends, both ways; with replicas, any two of them."""
    if plan.replicas:
        used = {domain for one in plan.placements for domain in one.domain_of_layer}
        return set(permutations(used, 2))
    borders = {
        ends for ends in pairwise(stage.domain for stage in plan.stages) if ends[0] != ends[1]
    }
    return borders | {(target, source) for source, target in borders}
