"""Families that fit nowhere: the smallest shortfall of memory that is found."""

from collections.abc import Mapping, Sequence

from agents.decision.families import Family
from des import EVERY_STEP, GradientExchange, Placement, Plan, Topology, Workload, domain_memory
from des.costs.feasibility import tightest_domain
from des.plan.synchronisation import Synchronisation, agree_every_step

_SCHEDULE = "1f1b"

_LEAST: Mapping[Family, tuple[int, int]] = {"pipeline": (2, 1), "hybrid": (3, 2)}
"""Fewest domains and microbatches of families that need others than 2 and 2."""


def shortfall(
    topology: Topology, workload: Workload, family: Family, mode: Synchronisation
) -> str | None:
    """Say what the roomiest plans of a family lack; None if one of them fits.

    Of one domain it is the nearest of all; of several copies it is two, in the roomiest domains or
    in two groups of like memory, whose layers are spread by it. Copies in step share the state of
    the optimiser, so there more of them may need less each.
    """
    lacking = []
    for plan in _roomiest(topology, workload, family, mode):
        tightest = tightest_domain(domain_memory(topology, workload, plan))
        if tightest.fits:
            return None
        lacking.append((tightest.overflow_fraction, str(tightest)))
    if not lacking:
        domains, microbatches = _LEAST.get(family, (2, 2))
        return (
            f"it takes {domains} domains and {microbatches} microbatches or more, got "
            f"{topology.num_domains} and {workload.num_microbatches}"
        )
    return min(lacking)[1]


def _roomiest(
    topology: Topology, workload: Workload, family: Family, mode: Synchronisation
) -> list[Plan]:
    """Plans of a family that need least of the fullest domain, by rule."""
    domains, num_layers = topology.domains, workload.num_layers
    memory = [domain.num_gpus * domain.gpu_memory_bytes for domain in domains]
    order = sorted(range(len(domains)), key=lambda domain: -memory[domain])
    if family == "single":
        return [_plan([[domain]], memory, num_layers) for domain in order]
    if family == "pipeline":
        return [_plan([order], memory, num_layers)] if len(order) > 1 else []
    if workload.num_microbatches < 2:
        return []
    found = []
    if family != "hybrid" and len(order) > 1:
        most = min(len(order), workload.num_microbatches) if agree_every_step(mode) else 2
        for count in range(2, most + 1):
            found.append(_plan([[one] for one in order[:count]], memory, num_layers, mode))
    if family != "replicas" and len(order) > 2:
        groups = [order[0::4] + order[3::4], order[1::4] + order[2::4]]
        found.append(_plan(groups, memory, num_layers, mode))
    return found


def _plan(
    groups: Sequence[Sequence[int]],
    memory: Sequence[float],
    num_layers: int,
    mode: Synchronisation = EVERY_STEP,
) -> Plan:
    """A pipeline a group, its layers spread by memory."""
    first, *others = (_spread(group, memory, num_layers) for group in groups)
    return Plan(
        placement=first,
        replicas=tuple(others),
        schedule=_SCHEDULE,
        synchronisation=mode,
        exchange=GradientExchange(sharded=bool(others) and agree_every_step(mode)),
    )


def _spread(group: Sequence[int], memory: Sequence[float], num_layers: int) -> Placement:
    total = sum(memory[domain] for domain in group)
    ends, held = [], 0.0
    for domain in group:
        held += memory[domain]
        ends.append(round(num_layers * held / total))
    counts = [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    return Placement.contiguous(list(group), counts)
