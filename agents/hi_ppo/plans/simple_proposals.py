"""Groups of domains that nothing learnt proposes: at random, and by the nearest neighbours."""

from collections.abc import Callable, Sequence

import numpy as np

from agents.hi_ppo.plans.plan_worlds import PlanWorld
from agents.hi_ppo.plans.sketch_judge import Groups
from agents.planners.choice.chains import grown_chain
from agents.planners.whole.partitions import clustered
from des.compiled.many.layout import Real

DrawGroups = Callable[[PlanWorld, int, np.random.Generator], Sequence[Groups]]
"""Proposes that many plans of a network."""


def random_groups(world: PlanWorld, count: int, rng: np.random.Generator) -> tuple[Groups, ...]:
    """Draw domains and their order uniformly, half of the time with breaks of any frequency."""
    return tuple(_random_groups(world, rng) for _ in range(count))


def _random_groups(world: PlanWorld, rng: np.random.Generator) -> Groups:
    size = world.num_domains
    break_share = rng.random() if rng.random() < 0.5 else 0.0
    groups: list[list[int]] = [[]]
    for domain in rng.permutation(size)[: int(rng.integers(1, size + 1))].tolist():
        is_full = len(groups[-1]) == world.most_stages
        if groups[-1] and (is_full or rng.random() < break_share):
            groups.append([])
        groups[-1].append(domain)
    return tuple(tuple(group) for group in groups[: world.most_groups])


def neighbour_groups(world: PlanWorld, count: int, rng: np.random.Generator) -> tuple[Groups, ...]:
    """Take chains along the best links, an eighth of them single domains, a third in groups.

    Chains begin anywhere and have any length; groups are those of merging the two with the best
    links between them step by step, each in the order of its own chain.
    """
    bandwidth = link_speeds(world)
    rates = world.judge.job.rate_flops_per_s
    by_rate = np.argsort(-rates, kind="stable").tolist()
    alone: list[Groups] = [((domain,),) for domain in by_rate[: count // 8]]
    left = count - len(alone)
    several = [one for one in clustered(bandwidth, rates.tolist()) if _fits(world, one)]
    grouped = [
        tuple(_chain_of(bandwidth, sorted(group)) for group in several[place])
        for place in rng.permutation(len(several))[: left // 3].tolist()
    ]
    chained = [_grown(world, bandwidth, rng) for _ in range(left - len(grouped))]
    return (*alone, *grouped, *chained)


def link_speeds(world: PlanWorld) -> Real:
    """Messages a second between every two domains in the slower direction, (K, K)."""
    wire_s = np.maximum(world.judge.job.wire_s, world.judge.job.wire_s.T)
    can_follow = world.features.facts.can_follow
    return np.where(can_follow, 1.0 / np.where(can_follow, np.maximum(wire_s, 1e-12), 1.0), 0.0)


def _fits(world: PlanWorld, groups: Sequence[frozenset[int]]) -> bool:
    return 1 < len(groups) <= world.most_groups and max(map(len, groups)) <= world.most_stages


def _chain_of(bandwidth: Real, members: Sequence[int]) -> tuple[int, ...]:
    within = bandwidth[np.ix_(members, members)]
    return tuple(members[at] for at in grown_chain(within, int(within.sum(axis=1).argmax())))


def _grown(world: PlanWorld, bandwidth: Real, rng: np.random.Generator) -> Groups:
    chain = grown_chain(bandwidth, int(rng.integers(len(bandwidth))))
    longest = min(len(chain), world.most_stages)
    return (chain[: round(longest ** rng.random())],)
