"""Policies for NUMA nodes, by hand and against all subsets of nodes."""

from itertools import combinations

import pytest
from device_servers import cube_mesh, pcie, server_of_pairs, servers, switched
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.gpu_placement import best_sets, optimal_placement
from agents.devices.numa_policies import POLICIES
from des.devices.server import Server


def needed_nodes(server: Server, gpus: tuple[int, ...]) -> int:
    """Least number of NUMA nodes that some GPUs are near to, by all subsets of nodes."""
    own = [set(server.gpus[gpu].numa_nodes) for gpu in gpus]
    nodes = sorted(set().union(*own))
    return next(
        count
        for count in range(len(nodes) + 1)
        for chosen in combinations(nodes, count)
        if all(each & set(chosen) for each in own)
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_an_empty_server_has_the_half_for_every_policy(policy):
    found = optimal_placement(cube_mesh(), 4, None, policy)

    assert found.gpus == (0, 1, 2, 3)
    assert found.num_nodes == 1


def test_best_effort_puts_the_node_before_nvlinks():
    """0-4 have 2 NVLinks, but are on two nodes; of one node 1-2 is left, with 2 as well."""
    free = (0, 4, 2)

    assert optimal_placement(cube_mesh(), 2, free).gpus == (0, 4)
    found = optimal_placement(cube_mesh(), 2, free, "best-effort")
    assert (found.gpus, found.score.nvlinks, found.num_nodes) == ((0, 2), 1, 1)
    assert found.why.startswith("1 NVLinks inside, farthest pair NV on 1 NUMA node, no set")
    assert best_sets(cube_mesh(), 2, free, "single-numa") == ((0, 2),)


def test_best_effort_takes_what_there_is():
    found = optimal_placement(pcie(), 4, (0, 1, 2, 4, 5), "best-effort")

    assert (found.gpus, found.num_nodes) == ((0, 1, 4, 5), 2)


def test_restricted_refuses_more_nodes_than_an_empty_server_needs():
    """Four GPUs fit on one node of the server, but only three of one are free."""
    free = (0, 1, 2, 4, 5)
    message = (
        "server s: policy restricted allows 4 GPUs on 1 NUMA node, got 5 free GPUs that need 2; "
        "the largest number that can be met is 3"
    )
    with pytest.raises(ValueError, match=message):
        optimal_placement(pcie(), 4, free, "restricted")
    assert optimal_placement(pcie(), 3, free, "restricted").gpus == (0, 1, 2)


def test_restricted_allows_two_nodes_for_what_no_node_has():
    assert optimal_placement(pcie(), 5, (0, 1, 2, 4, 5), "restricted").num_nodes == 2


def test_single_numa_refuses_what_no_node_has_and_names_the_largest():
    message = "allows 5 GPUs on 1 NUMA node, got 8 .* need 2; the largest .* is 4"
    with pytest.raises(ValueError, match=message):
        optimal_placement(pcie(), 5, None, "single-numa")
    with pytest.raises(ValueError, match="largest number that can be met is 2"):
        optimal_placement(pcie(), 4, (2, 3, 4, 7), "single-numa")


def test_a_gpu_near_two_nodes_joins_either():
    """GPU 1 is near both nodes, so 0-1 and 1-2 are on one node, 0-2 on two."""
    server = server_of_pairs(3, lambda one, other: "NV1", numa=[(0,), (0, 1), (1,)])

    assert best_sets(server, 2, None, "single-numa") == ((0, 1), (1, 2))
    assert optimal_placement(server, 3, None, "best-effort").num_nodes == 2


@pytest.mark.parametrize("policy", ["restricted", "single-numa"])
def test_unknown_nodes_are_refused_with_the_reason(policy):
    server = server_of_pairs(3, lambda one, other: "PIX", numa=[(0,), (), (0,)])

    with pytest.raises(ValueError, match=rf"{policy} needs the NUMA nodes .* not known of GPU1"):
        optimal_placement(server, 1, None, policy)
    assert optimal_placement(switched(), 2, None, "best-effort").num_nodes is None


def test_policies_hold_for_more_gpus_than_all_sets_are_looked_at():
    """Five nodes of four GPUs; two GPUs of each node are taken, but none of the last."""
    free = [gpu for gpu in range(20) if gpu % 4 < 2 or gpu >= 16]
    server = server_of_pairs(40, lambda one, other: "NV1", numa=[(gpu // 4,) for gpu in range(40)])
    free += range(20, 40)

    assert optimal_placement(server, 4, free, "single-numa").gpus == (16, 17, 18, 19)
    found = optimal_placement(server, 7, free, "restricted")
    assert (found.num_nodes, len({gpu // 4 for gpu in found.gpus})) == (2, 2)
    with pytest.raises(ValueError, match="largest number that can be met is 4"):
        optimal_placement(server, 5, free, "single-numa")


@given(server=servers(), draw=st.data())
def test_policies_take_the_least_nodes_or_refuse_rightly(server, draw):
    free = sorted(draw.draw(st.sets(st.sampled_from(range(server.num_gpus)), min_size=1)))
    size = draw.draw(st.integers(1, len(free)))
    least = min(needed_nodes(server, gpus) for gpus in combinations(free, size))
    everything = range(server.num_gpus)
    of_server = min(needed_nodes(server, gpus) for gpus in combinations(everything, size))

    for policy, most in (("best-effort", least), ("restricted", of_server), ("single-numa", 1)):
        if least > most:
            with pytest.raises(ValueError, match=f"policy {policy} allows {size} GPUs on {most}"):
                optimal_placement(server, size, free, policy)
            continue
        found = optimal_placement(server, size, free, policy)
        assert set(found.gpus) <= set(free)
        assert needed_nodes(server, found.gpus) == found.num_nodes == least
