"""Copies of the model that differ: each on sites of its own with its own degrees and share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import MOST_ENUMERATED, Chain
from agents.search.settings import BoundSetting, together_of
from des import Parallelism, Placement, Plan, Topology
from des.plan.synchronisation import Synchronisation

MOST_COPIES = 8
"""Most copies that differ: those up to which losses of seldom exchanges are published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySet:
    """Pipelines that train side by side.

    They have the sequences of a microbatch, recomputation and schedule in common. ``estimate_s`` is
    the time of a step with its part of the exchanges. [s]
    """

    copies: tuple[Candidate, ...]
    synchronisation: Synchronisation
    estimate_s: float

    @property
    def chains(self) -> tuple[Chain, ...]:
        """Sites of each pipeline, in the order of the model."""
        return tuple(one.chains[0] for one in self.copies)

    @property
    def sites(self) -> frozenset[int]:
        """All sites in use."""
        return frozenset(site for chain in self.chains for site in chain)

    @property
    def setting(self) -> BoundSetting:
        """Setting of the first pipeline, whose workload is that of all."""
        return self.copies[0].setting

    def plan(self, topology: Topology) -> Plan:
        """Return the plan that simulates it."""
        own = [one.plan(topology) for one in self.copies]
        parallelism = [Parallelism()] * topology.num_domains
        placements: list[Placement] = []
        for plan, chain in zip(own, self.chains, strict=True):
            placements.append(plan.placement)
            for site in chain if plan.parallelism else ():
                parallelism[site] = plan.parallelism[site]
        shares = tuple(_share(one) for one in self.copies)
        return Plan(
            placement=placements[0],
            replicas=tuple(placements[1:]),
            shares=() if len(set(shares)) == 1 else shares,
            schedule=own[0].schedule,
            parallelism=tuple(parallelism) if own[0].parallelism else (),
            synchronisation=self.synchronisation,
            sends=own[0].sends,
        )


def _share(one: Candidate) -> int:
    """Microbatches of a pipeline."""
    return one.setting.own_sequences // together_of(one.setting)


def partitions(speeds: Sequence[float], away_s: np.ndarray) -> list[tuple[Chain, ...]]:
    """Groups of sites, two or more, for a copy each; sites may be left out.

    Of few sites all there are. Of many the quickest ones alone, and groups that join the slowest
    one to the one nearest to it, again and again.

    Parameters
    ----------
    speeds
        Speed of each site, in any unit.
    away_s
        Time of a message from row to column and one back. [s]
    """
    sites = range(len(speeds))
    if len(speeds) <= MOST_ENUMERATED:
        return [groups for groups in _part(tuple(sites)) if len(groups) > 1]
    quickest = sorted(sites, key=lambda site: (-speeds[site], site))
    found: list[tuple[Chain, ...]] = [
        tuple((site,) for site in sorted(quickest[:count]))
        for count in range(2, min(len(speeds), MOST_COPIES) + 1)
    ]
    found += _joined(speeds, away_s)
    return list(dict.fromkeys(found))


def _part(sites: Chain) -> Iterator[tuple[Chain, ...]]:
    """All partitions of all sets of sites."""
    if not sites:
        yield ()
        return
    first, rest = sites[0], sites[1:]
    for groups in _part(rest):
        yield groups
        yield ((first,), *groups)
        for at, group in enumerate(groups):
            yield (*groups[:at], (first, *group), *groups[at + 1 :])


def _joined(speeds: Sequence[float], away_s: np.ndarray) -> Iterator[tuple[Chain, ...]]:
    """Partitions of all sites, from the finest to two groups."""
    groups: list[Chain] = [(site,) for site in range(len(speeds))]
    while len(groups) > 1:
        if len(groups) <= MOST_COPIES:
            yield tuple(groups)
        slowest = min(groups, key=lambda group: (sum(speeds[site] for site in group), group))
        groups.remove(slowest)
        nearest = min(groups, key=lambda group: (away_s[np.ix_(slowest, group)].min(), group))
        groups[groups.index(nearest)] = tuple(sorted((*slowest, *nearest)))
