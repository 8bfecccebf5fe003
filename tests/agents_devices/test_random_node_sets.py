"""Sets of nodes in random clusters: the best of all subsets, stable under renaming, quick."""

import cProfile
import pstats
import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from cluster_cases import clusters, regular_cluster
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.level_chain import chain_of, num_units_of
from agents.devices.node_request import ChosenNodes, NodeRequest
from agents.devices.node_sets import choose_nodes
from des.devices.cluster import Cluster


@st.composite
def wishes(draw: st.DrawFn, cluster: Cluster) -> tuple[list[str], NodeRequest]:
    """Draw free nodes and a wish for some of them."""
    names = [node.name for node in cluster.nodes]
    free = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    levels = [*chain_of(cluster).names]
    some = st.lists(st.sampled_from(names), unique=True, max_size=3)
    limits = st.dictionaries(st.sampled_from(levels), st.integers(1, 3), max_size=2)
    required = draw(st.sampled_from([None, *levels]))
    finer = levels[levels.index(required) :] if required else levels
    others = draw(some) if levels else []
    return free, NodeRequest(
        count=draw(st.integers(1, len(free))),
        required=required,
        preferred=draw(st.sampled_from([None, *finer])),
        preferred_nodes=tuple(draw(some)),
        data=tuple(draw(some)),
        spread=tuple((draw(limits) if levels else {}).items()),
        apart=draw(st.sampled_from(levels)) if others else None,
        others=tuple(others),
    )


def allowed(cluster: Cluster, free: list[str], wish: NodeRequest) -> list[str]:
    """Free nodes outside units of other jobs, and inside one of the required level."""
    place = {node.name: at for at, node in enumerate(cluster.nodes)}
    kept = [name for name in free if name not in wish.others]
    if wish.apart is not None:
        unit = cluster.level(wish.apart).unit_of_node
        taken = {unit[place[name]] for name in wish.others} - {-1}
        kept = [name for name in kept if unit[place[name]] not in taken]
    if wish.required is not None:
        unit = cluster.level(wish.required).unit_of_node
        kept = [name for name in kept if unit[place[name]] >= 0]
    return kept


def price(cluster: Cluster, nodes: tuple[str, ...], free: list[str], wish: NodeRequest) -> tuple:
    """Place of a set in the order of the choice, by its level and what comes below it."""
    chain = chain_of(cluster)
    place = {node.name: at for at, node in enumerate(cluster.nodes)}
    units = chain.units[:, [place[name] for name in nodes]]
    all_units = chain.units[:, [place[name] for name in free]]
    first = chain.names.index(wish.preferred) if wish.preferred else len(chain.names) - 1
    whole = [at for at in range(first + 1) if units[at, 0] >= 0 and len({*units[at]}) == 1]
    level = max(whole, default=-1)
    left = 0
    if level + 1 < len(units):
        used = [unit for unit in {*units[-1]} if unit >= 0]
        left = int(np.isin(all_units[-1], used).sum()) - int((units[-1] >= 0).sum())
    return (
        -level,
        sum(name not in wish.data for name in nodes) if wish.data else 0,
        sum(name not in wish.preferred_nodes for name in nodes),
        *(num_units_of(row) for row in units[level + 1 :]),
        left,
        int((all_units[level] == units[level, 0]).sum()) if level >= 0 else 0,
    )


def keeps(cluster: Cluster, nodes: tuple[str, ...], wish: NodeRequest) -> bool:
    """Whether a set keeps the limits and the required level."""
    places = [at for at, node in enumerate(cluster.nodes) if node.name in nodes]
    for name, limit in wish.spread:
        units = cluster.level(name).unit_of_node[places]
        if any(count > limit for count in np.unique(units[units >= 0], return_counts=True)[1]):
            return False
    if wish.required is None:
        return True
    units = cluster.level(wish.required).unit_of_node[places]
    return bool(units[0] >= 0 and (units == units[0]).all())


def best_price(cluster: Cluster, free: list[str], wish: NodeRequest) -> tuple | None:
    """Least price among all subsets; None if none keeps the limits."""
    prices = [
        price(cluster, nodes, free, wish)
        for nodes in combinations(free, wish.count)
        if keeps(cluster, nodes, wish)
    ]
    return min(prices, default=None)


def answer(cluster: Cluster, free: list[str], wish: NodeRequest) -> ChosenNodes | None:
    """Set that is chosen; None if the wish is refused."""
    try:
        return choose_nodes(cluster, free, wish)
    except ValueError:
        return None


@given(data=st.data())
def test_no_subset_is_better(data):
    cluster = data.draw(clusters(most_nodes=7))
    free, wish = data.draw(wishes(cluster))
    found = answer(cluster, free, wish)
    free = allowed(cluster, free, wish)
    best = best_price(cluster, free, wish)

    assert (found is None) == (best is None)
    if found is not None:
        assert len(set(found.nodes)) == wish.count
        assert set(found.nodes) <= set(free)
        assert keeps(cluster, found.nodes, wish)
        assert price(cluster, found.nodes, free, wish) == best


@given(data=st.data(), seed=st.integers(0, 99))
def test_names_do_not_change_the_choice(data, seed):
    """Other names of nodes, and another order of the free ones, give the same places."""
    cluster = data.draw(clusters())
    free, wish = data.draw(wishes(cluster))
    rng = random.Random(seed)
    names = [node.name for node in cluster.nodes]
    new = dict(
        zip(names, rng.sample([f"m{at}" for at in range(len(names))], len(names)), strict=True)
    )
    renamed = replace(
        cluster, nodes=tuple(replace(node, name=new[node.name]) for node in cluster.nodes)
    )
    other = replace(
        wish,
        data=tuple(new[name] for name in wish.data),
        others=tuple(new[name] for name in wish.others),
        preferred_nodes=tuple(new[name] for name in wish.preferred_nodes),
    )
    found = answer(cluster, free, wish)
    again = answer(renamed, rng.sample([new[name] for name in free], len(free)), other)

    assert (found is None) == (again is None)
    if found is not None and again is not None:
        assert again.nodes == tuple(new[name] for name in found.nodes)


@given(taken=st.sets(st.integers(0, 255), max_size=240), count=st.integers(1, 256))
def test_never_more_racks_than_the_largest_first(taken, count):
    """Racks with the most free nodes first is the least number of racks on one level."""
    cluster = regular_cluster(256, per_rack=8, per_spine=64)
    free = [node.name for at, node in enumerate(cluster.nodes) if at not in taken]
    count = min(count, len(free))
    rack = cluster.level("rack").unit_of_node[
        [cluster.nodes.index(cluster.node_named[n]) for n in free]
    ]
    sizes = sorted(np.unique(rack, return_counts=True)[1], reverse=True)
    greedy = int(np.searchsorted(np.cumsum(sizes), count)) + 1

    found = choose_nodes(cluster, free, NodeRequest(count=count))

    assert dict(found.num_units)["rack"] == greedy


@pytest.mark.parametrize(("num_nodes", "most"), [(2500, 160), (10_000, 640)])
def test_work_grows_as_the_number_of_racks(num_nodes, most):
    """One join of tables a rack at most, whatever is taken: 64 nodes of which half are free."""
    cluster = regular_cluster(num_nodes)
    free = [node.name for at, node in enumerate(cluster.nodes) if at * 7919 % 100 < 50]
    profile = cProfile.Profile()
    profile.runcall(choose_nodes, cluster, free, NodeRequest(count=64))
    calls = {place[2]: stats[0] for place, stats in pstats.Stats(profile).stats.items()}

    assert 0 < calls["cheapest_joins"] <= most
