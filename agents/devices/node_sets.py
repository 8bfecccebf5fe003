"""Sets of nodes by locality: the smallest unit of a cluster with room, and which of its nodes.

Levels are tried from the preferred one (default: the finest) up to the required one (default: the
whole cluster), as Kueue's topology-aware scheduling does. On the first level where a unit has room,
the set is the cheapest of all its units: most nodes near the data, then most preferred nodes, then
fewest units of each level below, coarse to fine, then fewest free nodes left over in units that it
uses, then the unit with fewest free nodes, then the first in the cluster's order. This is exact
(`agents.devices.node_tables`). A limit for each NVLink domain where these cut across the switches
is held greedily, and the answer says so.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agents.devices.level_chain import Chain, chain_of, num_units_of, within_limit
from agents.devices.node_request import ChosenNodes, NodeRequest
from agents.devices.node_tables import IMPOSSIBLE, Forest, Rates, Table, Whole, rates
from des.devices.cluster import Cluster
from des.devices.cluster_levels import ANY


def choose_nodes(cluster: Cluster, free: Iterable[str], request: NodeRequest) -> ChosenNodes:
    """Choose the best set of free nodes.

    Raises
    ------
    ValueError
        If fewer nodes are free, or no set keeps the limits and the required level; then the
        message names the largest unit of that level.

    Examples
    --------
    >>> from des.devices.cluster import ClusterNode, Switch
    >>> cluster = Cluster(
    ...     nodes=tuple(ClusterNode(name=f"n{i}", switch=f"r{i // 4}") for i in range(8)),
    ...     switches=(Switch(name="r0", level="rack"), Switch(name="r1", level="rack")),
    ... )
    >>> choose_nodes(cluster, ["n0", "n1", "n2", "n4", "n5"], NodeRequest(count=2)).nodes
    ('n4', 'n5')
    """
    return _Choice(cluster, free, request).best()


class _Choice:
    """One choice: the cluster's levels, prices, and free nodes that may be taken."""

    def __init__(self, cluster: Cluster, free: Iterable[str], request: NodeRequest) -> None:
        self._cluster, self._request = cluster, request
        self._chain: Chain = chain_of(cluster)
        self._names = self._chain.names
        self._free = self._allowed(_places(cluster, free))
        limits = {cluster.level(name).name: limit for name, limit in request.spread}
        self._limits = {
            self._names.index(name): limit for name, limit in limits.items() if name in self._names
        }
        self._across = [
            (cluster.level(name), limit)
            for name, limit in limits.items()
            if name not in (*self._names, ANY)
        ]
        near = self._near()
        self._is_near = near
        preferred = np.zeros(len(cluster.nodes), dtype=bool)
        preferred[_places(cluster, request.preferred_nodes)] = True
        self._is_preferred = preferred
        self._rates: Rates = rates(
            is_far=~near,
            is_other=~preferred,
            num_units=self._chain.num_units,
            count=request.count,
            num_free=len(self._free),
        )

    def best(self) -> ChosenNodes:
        """Set on the first level that has room."""
        levels = self._levels_to_try()
        for level in levels:
            found = self._on_level(level)
            if found is not None:
                return self._answer(found)
        raise ValueError(self._refusal(levels[-1]))

    def _allowed(self, free: Whole) -> Whole:
        """Free nodes outside the units that hold nodes of other jobs."""
        request = self._request
        num_free = len(free)
        if request.apart is not None:
            unit_of = self._cluster.level(request.apart).unit_of_node
            others = _places(self._cluster, request.others)
            taken = np.unique(unit_of[others])
            free = free[~np.isin(unit_of[free], taken[taken >= 0]) & ~np.isin(free, others)]
        if len(free) < request.count:
            left = f", {len(free)} of them apart from other jobs" if len(free) < num_free else ""
            raise ValueError(
                f"node set: count must be at most {len(free)}, as {num_free} nodes are free{left}; "
                f"got {request.count}"
            )
        if request.required is not None:
            level = self._cluster.level(request.required)
            free = free[level.unit_of_node[free] >= 0]
            if len(free) < request.count:
                raise ValueError(
                    f"node set: required {level.name} must have {request.count} free nodes; "
                    f"{len(free)} free nodes are in a unit of that level at all"
                )
        return free

    def _near(self) -> npt.NDArray[np.bool_]:
        """Whether each node is among, or below, what holds the data."""
        wanted = set(self._request.data)
        near = np.array([node.name in wanted for node in self._cluster.nodes], dtype=bool)
        known = wanted & set(self._cluster.node_named)
        for name in self._cluster.level_names:
            level = self._cluster.level(name)
            held = [at for at, unit in enumerate(level.units) if unit in wanted]
            known |= {level.units[at] for at in held}
            near |= np.isin(level.unit_of_node, held)
        if known != wanted:
            raise ValueError(
                f"node set: data must be names of nodes, switches or blocks, "
                f"got {sorted(wanted - known)[0]!r}"
            )
        return near

    def _levels_to_try(self) -> list[str]:
        """Levels from the preferred one up to the required one."""
        request = self._request
        across = [name for name in self._cluster.level_names if name not in self._names]
        names = [*across, *reversed(self._names), ANY]
        last = self._cluster.level(request.required or ANY).name
        default = last if last in across else ([*reversed(self._names), ANY])[0]
        first = self._cluster.level(request.preferred or default).name
        if names.index(first) > names.index(last):
            raise ValueError(
                f"node set: preferred must be a level of at most {request.required}, the required "
                f"one, got {request.preferred!r}"
            )
        if last in across:
            return [last]
        tried = names[names.index(first) : names.index(last) + 1]
        return [name for name in tried if name not in across or name == first]

    def _on_level(self, name: str) -> Table | None:
        """Table of the unit of a level with the cheapest set; None if no unit has room."""
        count = self._request.count
        best, least = None, (IMPOSSIBLE, 0)
        for table, num_free in self._tables(name, count):
            if len(table.costs) > count and (int(table.costs[count]), num_free) < least:
                best, least = table, (int(table.costs[count]), num_free)
        return best

    def _tables(self, name: str, at_least: int) -> Iterator[tuple[Table, int]]:
        """Tables of the units of a level with that many free nodes, and how many these are."""
        if name in self._names and not self._across:
            place = self._names.index(name)
            for unit, first, last in self._forest.runs(place, *self._forest.whole):
                if unit >= 0 and last - first >= at_least:
                    table = self._forest.table(first, last, place + 1)
                    table.costs = table.costs[: self._forest.limit(place, first) + 1]
                    yield table, last - first
            return
        if name == ANY and not self._across:
            yield self._forest.table(*self._forest.whole, 0), len(self._free)
            return
        unit_of = self._cluster.level(name).unit_of_node[self._free]
        for unit in np.unique(unit_of[unit_of >= 0]):
            places = self._free[unit_of == unit]
            for level, limit in self._across:
                places = within_limit(level.unit_of_node, limit, places, self._rates.of_node)
            if len(places) >= at_least:
                forest = self._forest_of(places)
                yield forest.table(*forest.whole, 0), len(places)

    @cached_property
    def _forest(self) -> Forest:
        return self._forest_of(self._free)

    def _forest_of(self, places: Whole) -> Forest:
        return Forest(self._chain.units, places, self._rates, self._request.count, self._limits)

    def _answer(self, table: Table) -> ChosenNodes:
        places = np.array(table.chosen(self._request.count), dtype=np.int64)
        level, unit = self._common(places)
        return ChosenNodes(
            nodes=tuple(self._cluster.nodes[at].name for at in places.tolist()),
            level=level,
            unit=unit,
            num_units=tuple(
                (name, num_units_of(self._cluster.level(name).unit_of_node[places]))
                for name in self._cluster.level_names
            ),
            near_fraction=float(self._is_near[places].mean()) if self._request.data else None,
            num_preferred=int(self._is_preferred[places].sum()),
            is_exact=self._rates.is_exact and not self._across,
        )

    def _common(self, places: Whole) -> tuple[str, str]:
        """Finest level of which one unit holds some nodes, and the unit."""
        across = [name for name in self._cluster.level_names if name not in self._names]
        for name in (*across, *reversed(self._names)):
            level = self._cluster.level(name)
            first = level.unit_of_node[places[0]]
            if first >= 0 and (level.unit_of_node[places] == first).all():
                return name, level.units[first]
        return ANY, "cluster"

    def _refusal(self, name: str) -> str:
        """Message about a level whose units are all too small."""
        count = self._request.count
        level = self._cluster.level(name)
        sizes = [
            (int((table.costs < IMPOSSIBLE).sum()) - 1, table) for table, _ in self._tables(name, 1)
        ]
        most, table = max(sizes, key=lambda size: size[0])
        limits = ", ".join(f"{limit} a {each}" for each, limit in self._request.spread)
        kept = f" with at most {limits}" if limits else ""
        if name == ANY:
            return f"node set: count must be at most {most}{kept}, got {count}"
        unit = level.units[level.unit_of_node[table.chosen(1)[0]]]
        names = [*self._chain.names]
        coarser = names[: names.index(name)] if name in names else names
        able = [each for each in (*reversed(coarser), ANY) if self._on_level(each) is not None]
        hint = f"; level {able[0]} can hold them" if able else ""
        return (
            f"node set: required {name} must have {count} free nodes{kept}; "
            f"the largest, {unit}, has {most}{hint}"
        )


def _places(cluster: Cluster, names: Iterable[str]) -> Whole:
    """Places of nodes by name, in the order of the cluster.

    Raises
    ------
    ValueError
        If a name is unknown, or stands twice.
    """
    place = {node.name: at for at, node in enumerate(cluster.nodes)}
    found: set[int] = set()
    for name in names:
        at = place.get(name)
        if at is None or at in found:
            problem = "unknown node" if at is None else "node given twice"
            raise ValueError(f"node set: {problem}: {name!r}")
        found.add(at)
    return np.array(sorted(found), dtype=np.int64)
