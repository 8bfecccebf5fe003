"""Groups of domains, and orders of their domains, that links suggest."""

from collections.abc import Sequence
from functools import cached_property
from itertools import permutations

import numpy as np

from agents.judge.paced_judge import Order
from agents.planners.choice.chains import grown_chain
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
        if group not in self._known:
            self._known[group] = self._suggested(sorted(group))
        return self._known[group]

    def _suggested(self, members: list[int]) -> Small:
        size = len(members)
        if size > self._most_stages:
            return np.empty((0, size), dtype=np.int32)
        if size <= MOST_FOR_ALL_ORDERS:
            return np.array(list(permutations(members)), dtype=np.int32)
        within = self._bandwidth[np.ix_(members, members)]
        by_total = np.argsort(-within.sum(axis=1), kind="stable")[:_MOST_STARTS]
        found: dict[Order, None] = {}
        for start in by_total.tolist():
            chain = tuple(members[each] for each in grown_chain(within, start))
            if len(chain) == size:
                found[chain] = found[chain[::-1]] = None
        return np.array(list(found), dtype=np.int32).reshape(-1, size)
