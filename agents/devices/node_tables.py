"""Cheapest choices of any number of nodes below a unit of a cluster, exact by dynamic programming.

A table of a unit has the least cost of choosing 0, 1, 2, ... of its free nodes. That of a rack is a
sum of its cheapest nodes; that of a spine joins those of its racks pair by pair (min-plus
convolution; sizes are bounded by the nodes below, so that all joins of a tree of n nodes take at
most n times the number of nodes wanted).
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]

IMPOSSIBLE = 1 << 61
"""Cost of what cannot be chosen."""

_MOST_COST = 1 << 60
_STRIP = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Prices of a choice, each above the greatest sum of all less important ones.

    Attributes
    ----------
    of_node
        Cost of every node of the cluster: data far, then not preferred.
    of_unit
        Cost of one more unit, by level, coarse to fine.
    of_left
        Cost of every free node that stays in a unit of the finest level that the set uses.
    is_exact
        False where the least important prices had to be left out, as numbers would be too large.
    """

    of_node: Whole
    of_unit: tuple[int, ...]
    of_left: int
    is_exact: bool


def rates(
    *,
    is_far: npt.NDArray[np.bool_],
    is_other: npt.NDArray[np.bool_],
    num_units: Sequence[int],
    count: int,
    num_free: int,
) -> Rates:
    """Prices in the order data, preferred nodes, units coarse to fine, nodes left over."""
    far = count if is_far.any() and not is_far.all() else 0
    other = count if is_other.any() and not is_other.all() else 0
    bounds = [far, other, *(min(count, units) for units in num_units), num_free]
    prices = [0] * len(bounds)
    above = 1
    # Least important first; what does not fit is left out from there.
    skipped = 0
    while _product(bounds[: len(bounds) - skipped]) >= _MOST_COST:
        skipped += 1
    for at in reversed(range(len(bounds) - skipped)):
        prices[at] = above if bounds[at] else 0
        above *= bounds[at] + 1
    nodes = prices[0] * is_far.astype(np.int64) + prices[1] * is_other.astype(np.int64)
    return Rates(
        of_node=nodes, of_unit=tuple(prices[2:-1]), of_left=prices[-1], is_exact=not skipped
    )


def _product(bounds: Sequence[int]) -> int:
    product = 1
    for bound in bounds:
        product *= bound + 1
    return product


@dataclass(slots=True, kw_only=True)
class Table:
    """Least costs of choosing 0, 1, 2, ... nodes, and which nodes these are.

    A table has either ``nodes``, cheapest first, or ``parts`` with the numbers that each takes:
    ``taken[i][k]`` of part i where k nodes come from it and those after it.
    """

    costs: Whole
    nodes: Whole | None = None
    parts: list["Table"] = field(default_factory=list)
    taken: list[Whole] = field(default_factory=list)

    def chosen(self, count: int) -> list[int]:
        """Places of the nodes of the cheapest choice, in the order of the tree."""
        if self.nodes is not None:
            return sorted(self.nodes[:count].tolist())
        found: list[int] = []
        for part, taken in zip(self.parts, self.taken, strict=True):
            here = int(taken[count])
            found += part.chosen(here) if here else []
            count -= here
        return found


class Forest:
    """Free nodes of a cluster in the order of its tree, and tables of any unit of it.

    ``units`` (levels, nodes) are the units of all nodes, coarse to fine, -1 for none; ``free`` the
    places of the free nodes; ``limits`` how many nodes of a unit may be chosen, by level.
    """

    def __init__(
        self, units: Whole, free: Whole, rates: Rates, count: int, limits: Mapping[int, int]
    ) -> None:
        keys = units[:, free]
        keys = np.where(keys < 0, np.iinfo(np.int64).max, keys)
        order = np.lexsort((free, *keys[::-1]))
        self._free = free[order]
        self._rates, self._count, self._limits = rates, count, limits
        self._units = units[:, self._free]
        self._starts: list[list[int]] = []
        changes = np.zeros(len(free), dtype=bool)
        changes[:1] = True
        for row in self._units:
            changes[1:] |= row[1:] != row[:-1]
            self._starts.append(np.flatnonzero(changes).tolist())
        self._plain: dict[tuple[int, bool], Whole] = {}
        self._costs = rates.of_node[self._free]
        self._is_plain = not self._costs.any()

    @property
    def whole(self) -> tuple[int, int]:
        """First and last of all free nodes."""
        return 0, len(self._free)

    def runs(self, level: int, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Unit, first and last free node of the units of a level; -1 is no unit."""
        starts = self._starts[level]
        low, high = bisect_left(starts, first), bisect_left(starts, last)
        ends = [*starts[low + 1 : high], last]
        for start, end in zip(starts[low:high], ends, strict=True):
            yield int(self._units[level, start]), start, end

    def limit(self, level: int, node: int) -> int:
        """Most nodes that limits of a level and those above leave to the unit of a free node."""
        return min(
            (
                limit
                for at, limit in self._limits.items()
                if at <= level and self._units[at, node] >= 0
            ),
            default=self._count,
        )

    def table(self, first: int, last: int, level: int) -> Table:
        """Table of free nodes in a row, by units of a level and those below."""
        if level == len(self._units):
            return self._leaf(first, last)
        if level == len(self._units) - 1 and self._is_plain:
            return self._join([self._plain_unit(*run) for run in self.runs(level, first, last)])
        return self._join([self._unit(*run, level) for run in self.runs(level, first, last)])

    def _leaf(self, first: int, last: int) -> Table:
        costs = self._costs[first:last]
        order = np.argsort(costs, kind="stable")[: self._count]
        total = np.concatenate(([0], np.cumsum(costs[order])))
        return Table(costs=total, nodes=self._free[first:last][order])

    def _unit(self, unit: int, first: int, last: int, level: int) -> Table:
        inner = self.table(first, last, level + 1)
        costs = inner.costs + self._price(level, unit, len(inner.costs), last - first)
        limit = self._limits.get(level)
        if limit is not None and unit >= 0:
            costs = costs[: limit + 1]
        return Table(costs=costs, nodes=inner.nodes, parts=inner.parts, taken=inner.taken)

    def _plain_unit(self, unit: int, first: int, last: int) -> Table:
        """Table of a finest unit whose nodes all cost nothing: one array for all of a size."""
        level = len(self._units) - 1
        key = (last - first, unit >= 0)
        if key not in self._plain:
            length = min(last - first, self._count) + 1
            limit = self._limits.get(level)
            if limit is not None and unit >= 0:
                length = min(length, limit + 1)
            self._plain[key] = self._price(level, unit, length, last - first)
        return Table(costs=self._plain[key], nodes=self._free[first:last])

    def _price(self, level: int, unit: int, length: int, num_free: int) -> Whole:
        """Cost of using a unit, by the number of its nodes; a node in none counts as one."""
        numbers = np.arange(length, dtype=np.int64)
        if unit < 0:
            return self._rates.of_unit[level] * numbers
        price = np.full(length, self._rates.of_unit[level], dtype=np.int64)
        if level == len(self._units) - 1:
            price += self._rates.of_left * (num_free - numbers)
        price[0] = 0
        return price

    def _join(self, parts: list[Table]) -> Table:
        """Table of all parts together; of equal costs the one with more from earlier parts."""
        costs = parts[-1].costs
        taken = [np.arange(len(costs), dtype=np.int64)]
        for part in reversed(parts[:-1]):
            costs, here = cheapest_joins(part.costs, costs, self._count)
            taken.append(here)
        return Table(costs=costs, parts=parts, taken=taken[::-1])


def cheapest_joins(one: Whole, rest: Whole, count: int) -> tuple[Whole, Whole]:
    """Least costs of both together, and how many nodes of the first they have."""
    length = min(len(one) + len(rest) - 1, count + 1)
    best = np.full(length, IMPOSSIBLE, dtype=np.int64)
    taken = np.zeros(length, dtype=np.int64)
    padded = np.full(len(one) - 1 + max(length, len(rest)), IMPOSSIBLE, dtype=np.int64)
    padded[len(one) - 1 : len(one) - 1 + len(rest)] = rest
    step = padded.strides[0]
    for high in range(len(one), 0, -_STRIP):
        low = max(0, high - _STRIP)
        # Row k has rest[k - j] + one[j], j from high - 1 down to low.
        start = padded[len(one) - high :]
        rows = np.lib.stride_tricks.as_strided(start, (length, high - low), (step, step))
        sums = rows + one[low:high][::-1]
        place = sums.argmin(axis=1)
        least = sums[np.arange(length), place]
        better = least < best
        best = np.where(better, least, best)
        taken = np.where(better, high - 1 - place, taken)
    return best, taken
