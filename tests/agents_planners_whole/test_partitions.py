"""Partitions of domains: all of them, clusters, and those one change away."""

from itertools import combinations

import numpy as np
import pytest

from agents.planners.choice.chains import grown_chain, grown_chains
from agents.planners.whole.groups import whole_shares
from agents.planners.whole.partitions import (
    all_partitions,
    clustered,
    cut_chain,
    partition_of,
    partitions_near,
)


@pytest.mark.parametrize(("num_domains", "bell"), [(1, 2), (2, 5), (3, 15), (5, 203)])
def test_all_partitions_of_all_subsets_are_as_many_as_bells_numbers_say(num_domains, bell):
    found = all_partitions(num_domains)
    assert len(set(found)) == len(found) == bell - 1
    assert all(are_apart(one) for one in found)


def test_clusters_join_what_fast_links_join():
    bandwidth = np.full((6, 6), 1.0)
    for near in ((0, 3), (1, 4), (2, 5)):
        bandwidth[near] = bandwidth[near[::-1]] = 100.0
    pairs = partition_of([frozenset(near) for near in ((0, 3), (1, 4), (2, 5))])
    assert pairs in clustered(bandwidth, [1.0] * 6)


@pytest.mark.parametrize("rates", [[1.0] * 8, [4.0, 1.0, 1.0, 1.0, 1.0, 4.0, 2.0, 2.0]])
def test_a_chain_is_cut_into_groups_of_neighbours_of_about_equal_speed(rates):
    chain = (3, 1, 0, 2, 7, 6, 5, 4)
    found = cut_chain(chain, rates)
    assert [len(one) for one in found] == [2, 3, 4]
    for one in found:
        assert are_apart(one)
        assert frozenset().union(*one) == set(chain)
        for group in one:
            places = sorted(map(chain.index, group))
            assert places == list(range(places[0], places[-1] + 1))
            assert sum(rates[domain] for domain in group) <= sum(rates) / len(one) + max(rates)


def test_chains_of_many_networks_are_those_of_each():
    within = np.random.default_rng(0).integers(0, 3, size=(20, 5, 5)).astype(float)
    starts = np.array([[0, 3]] * 20)
    each = [grown_chain(one, start) for one in within for start in (0, 3)]
    assert grown_chains(within, starts) == each
    assert min(map(len, each)) < max(map(len, each)) == 5


def test_neighbours_are_partitions_one_change_away():
    start = partition_of([frozenset({0, 2}), frozenset({1})])
    near = partitions_near(start, 4)
    assert start not in near
    assert len(set(near)) == len(near)
    assert all(are_apart(one) for one in near)
    assert partition_of([frozenset({0, 1, 2})]) in near
    assert partition_of([frozenset({0, 2}), frozenset({1, 3})]) in near
    assert partition_of([frozenset({0, 2})]) in near


@pytest.mark.parametrize(
    ("shares", "total", "expected"),
    [((4.0, 4.0), 8, (4, 4)), ((0.2, 7.8), 8, (1, 7)), ((0.1, 0.1, 3.8), 4, (1, 1, 2))],
)
def test_whole_shares_add_up_and_leave_no_group_without_one(shares, total, expected):
    assert whole_shares(shares, total) == expected


def are_apart(partition):
    return all(partition) and not any(one & other for one, other in combinations(partition, 2))
