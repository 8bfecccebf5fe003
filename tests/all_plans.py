"""All plans of a family on a small world, and the shortest step among those that fit."""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product

from agents.decision.families import Family, family_of
from agents.decision.plan_space import PlanSpace
from agents.judge.step_times import step_times_s
from des import Corrections, GradientExchange, Placement, Plan, Topology, Workload, domain_memory
from des.plan.synchronisation import Synchronisation, agree_every_step


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Ways to write a count as a sum of that number of parts of at least 1, in order."""
    for cuts in combinations(range(1, total), parts - 1):
        yield tuple(b - a for a, b in zip((0, *cuts), (*cuts, total), strict=True))


def groupings(domains: Sequence[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Ways to put all these domains into groups, in every order of groups and of domains."""
    for order in permutations(domains):
        for num_groups in range(1, len(order) + 1):
            for sizes in compositions(len(order), num_groups):
                starts = [sum(sizes[:index]) for index in range(num_groups)]
                yield tuple(
                    order[start : start + size] for start, size in zip(starts, sizes, strict=True)
                )


def exchanges(num_groups: int, mode: Synchronisation) -> Iterator[GradientExchange]:
    """The ring, all trees, and where it may be the ring over which the optimiser is sharded."""
    yield GradientExchange(bucket_bytes=1.0)
    if num_groups > 1:
        for tree in product(*map(range, range(1, num_groups))):
            yield GradientExchange(bucket_bytes=1.0, tree=tree)
        if agree_every_step(mode):
            yield GradientExchange(bucket_bytes=1.0, sharded=True)


def all_plans(topology: Topology, workload: Workload, space: PlanSpace) -> Iterator[Plan]:
    """Every plan of the space: all groups, orders, splits of layers, shares, and exchanges."""
    num_layers, num_domains = workload.num_layers, topology.num_domains
    modes = {mode for family in space.families for mode in space.modes(family)}
    for count in range(1, num_domains + 1):
        for domains in combinations(range(num_domains), count):
            for groups in groupings(domains):
                if max(map(len, groups)) > num_layers or len(groups) > workload.num_microbatches:
                    continue
                splits = product(*(compositions(num_layers, len(group)) for group in groups))
                for split in splits:
                    first, *others = map(Placement.contiguous, groups, split)
                    shares = compositions(workload.num_microbatches, len(groups))
                    kept = [(mode, one) for mode in modes for one in exchanges(len(groups), mode)]
                    for name, share, (mode, exchange) in product(space.schedules, shares, kept):
                        yield Plan(
                            placement=first,
                            replicas=tuple(others),
                            shares=share if others else (),
                            schedule=name,
                            synchronisation=mode,
                            exchange=exchange,
                            activation_compression=max(space.compressions),
                        )


def shortest_steps_s(
    topology: Topology, workload: Workload, space: PlanSpace, corrections: Corrections
) -> dict[Family, float]:
    """Shortest mean step of each family among the plans that fit into memory. [s]"""
    plans = [
        plan
        for plan in all_plans(topology, workload, space)
        if family_of(plan) in space.families
        and all(domain.fits for domain in domain_memory(topology, workload, plan))
    ]
    found: dict[Family, float] = {}
    times_s = step_times_s(topology, workload, plans, corrections) if plans else ()
    for plan, step_s in zip(plans, times_s, strict=True):
        family = family_of(plan)
        found[family] = min(found.get(family, step_s), step_s)
    return found
