"""Groups of domains, and orders of their domains, that links suggest."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice, permutations

import numpy as np

from agents.judge.paced_judge import Order
from agents.planners.choice.chains import grown_chains
from agents.planners.whole.partitions import Group, Partition, clustered, cut_chain
from des.compiled.many.layout import Small

MOST_FOR_ALL_ORDERS = 3
"""Most domains of a group of which all orders are judged."""

_MOST_STARTS = 2
"""Domains of a larger group from which a chain of its best links grows."""


class GroupOrders:
    """Orders of groups that their links suggest, remembered for all judges of a network.

    All orders of a few domains; of more, chains of the best links both ways round.

    Parameters
    ----------
    bandwidth
        Between every two domains, (K, K). [bytes/s]
    rates
        Speed of each domain.
    most_stages
        Of a pipeline; larger groups have no order.
    """

    def __init__(self, bandwidth: np.ndarray, rates: Sequence[float], most_stages: int) -> None:
        self._bandwidth, self._rates, self._most_stages = bandwidth, rates, most_stages
        self._known: dict[Group, Small] = {}

    @property
    def num_domains(self) -> int:
        """Domains of the network."""
        return len(self._rates)

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """Partitions of many domains to begin with: clusters, and chains of all domains cut."""
        chains = self.of(frozenset(range(self.num_domains))).tolist()
        cut = (one for chain in chains for one in cut_chain(chain, self._rates))
        return (*clustered(self._bandwidth, self._rates), *cut)

    def of(self, group: Group) -> Small:
        """Orders of a group of D domains, (N, D): none where it is larger than a pipeline."""
        return self.rows_of([group])[0][:, : len(group)]

    def rows_of(self, groups: Sequence[Group]) -> list[Small]:
        """Orders of groups as rows of as many stages as a pipeline has at most, zeros behind."""
        self._look_at(groups)
        return [self._known[group] for group in groups]

    def _look_at(self, groups: Iterable[Group]) -> None:
        """Find the orders of groups, those of one size together."""
        by_size: dict[int, list[Group]] = {}
        for group in dict.fromkeys(groups):
            if group not in self._known:
                by_size.setdefault(len(group), []).append(group)
        for size, own in by_size.items():
            members = np.array([sorted(group) for group in own], dtype=np.int32)
            if size > self._most_stages:
                nothing = np.zeros((0, self._most_stages), dtype=np.int32)
                self._known |= dict.fromkeys(own, nothing)
            elif size <= MOST_FOR_ALL_ORDERS:
                orders = members[:, list(permutations(range(size)))]
                rows = np.zeros((*orders.shape[:2], self._most_stages), dtype=np.int32)
                rows[:, :, :size] = orders
                self._known |= zip(own, rows, strict=True)
            else:
                self._known |= zip(own, self._chains(members), strict=True)

    def _chains(self, members: Small) -> list[Small]:
        """Chains of N groups of D domains each, both ways round; whole ones alone."""
        within = self._bandwidth[members[:, :, np.newaxis], members[:, np.newaxis, :]]
        by_total = np.argsort(-within.sum(axis=2), axis=1, kind="stable")[:, :_MOST_STARTS]
        chains = iter(grown_chains(within, by_total))
        size, found = members.shape[1], []
        for own in members:
            orders: dict[Order, None] = {}
            for chain in islice(chains, by_total.shape[1]):
                if len(chain) == size:
                    orders[chain] = orders[chain[::-1]] = None
            rows = np.zeros((len(orders), self._most_stages), dtype=np.int32)
            if orders:
                rows[:, :size] = own[np.array(list(orders))]
            found.append(rows)
        return found
