"""Clusters by hand: places, levels, common units, hops, and every nonsense that is refused."""

import time

import pytest
from cluster_cases import regular_cluster
from hypothesis import given
from hypothesis import strategies as st

from des.devices.cluster import Block, Cluster, ClusterNode, Switch
from des.devices.presets import simulated


def nvl72_pair() -> Cluster:
    """Two GB200 NVL72 racks of 18 trays below one spine, each an NVLink domain."""
    return Cluster(
        nodes=tuple(
            ClusterNode(
                name=f"t{at}",
                switch=f"rack{at // 18}",
                block=f"nvl{at // 18}",
                num_gpus=4,
                uplink_bytes_per_s=200e9,
            )
            for at in range(36)
        ),
        switches=(
            Switch(name="rack0", level="rack", parent="spine", uplink_bytes_per_s=1e12),
            Switch(name="rack1", level="rack", parent="spine"),
            Switch(name="spine", level="spine"),
        ),
        blocks=(
            Block(name="nvl0", bandwidth_bytes_per_s=900e9),
            Block(name="nvl1", bandwidth_bytes_per_s=900e9),
        ),
    )


def test_levels_go_from_coarse_to_fine():
    cluster = nvl72_pair()

    assert cluster.level_names == ("spine", "rack", "nvlink")
    assert cluster.level("rack").units == ("rack0", "rack1")
    assert cluster.level("rack").unit_of_node.tolist() == [0] * 18 + [1] * 18
    assert cluster.level("switch").name == "spine"
    assert cluster.level("any").unit_of_node.tolist() == [0] * 36


def test_nearest_common_unit_is_the_nvlink_domain_then_the_lowest_switch():
    cluster = nvl72_pair()

    assert cluster.nearest_common("t0", "t17") == ("nvlink", "nvl0")
    assert cluster.nearest_common("t0", "t18") == ("spine", "spine")
    assert cluster.ancestors("t0") == ("rack0", "spine")


def test_hops_count_links_over_switches():
    cluster = nvl72_pair()

    assert [cluster.hops("t0", other) for other in ("t0", "t1", "t18")] == [0, 2, 4]


def test_nodes_below_no_common_switch_are_not_joined():
    cluster = Cluster(nodes=(ClusterNode(name="a"), ClusterNode(name="b")))

    assert cluster.nearest_common("a", "b") is None
    assert cluster.hops("a", "b") is None
    assert cluster.level_names == ()


def test_the_graph_has_links_with_bandwidths_where_they_are_known():
    graph = nvl72_pair().graph()

    assert graph.number_of_nodes() == 36 + 3 + 2
    assert graph.number_of_edges() == 36 + 36 + 2
    assert graph.edges[("switch", "rack0"), ("switch", "spine")] == {"bandwidth_bytes_per_s": 1e12}
    assert graph.edges[("switch", "rack1"), ("switch", "spine")] == {}
    assert graph.edges[("node", "t0"), ("block", "nvl0")] == {"bandwidth_bytes_per_s": 900e9}


def test_units_of_mixed_depth_leave_gaps():
    """A node straight below the spine is in no leaf."""
    cluster = Cluster(
        nodes=(ClusterNode(name="a", switch="leaf"), ClusterNode(name="b", switch="spine")),
        switches=(
            Switch(name="leaf", level="leaf", parent="spine"),
            Switch(name="spine", level="spine"),
        ),
    )

    assert [level.unit_of_node.tolist() for level in cluster.levels] == [[0, 0], [0, -1]]


SWITCH = Switch(name="s", level="leaf")
NODE = ClusterNode(name="n", switch="s")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nodes": ()}, "nodes must be at least one, got none"),
        ({"nodes": (NODE, NODE)}, "nodes must have different names, got 'n' twice"),
        ({"switches": (SWITCH, SWITCH)}, "switches must have different names, got 's' twice"),
        ({"switches": ()}, "node n: unknown switch 's'"),
        ({"nodes": (ClusterNode(name="n", block="b"),)}, "node n: unknown block 'b'"),
        ({"blocks": (Block(name="b"),) * 2}, "blocks must have different names, got 'b' twice"),
        ({"block_sizes": (0,)}, "block_sizes must be a whole number"),
        (
            {"switches": (Switch(name="s", level="leaf", parent="t"),)},
            "switch s: unknown switch 't' above it",
        ),
        (
            {
                "switches": (
                    Switch(name="s", level="leaf", parent="t"),
                    Switch(name="t", level="spine", parent="s"),
                )
            },
            "switches must be a tree, got a circle",
        ),
        (
            {"switches": (SWITCH, Switch(name="t", level="leaf", parent="s"))},
            "switch t: level must be finer than that of s above it, got 'leaf'",
        ),
        (
            {
                "switches": (
                    SWITCH,
                    Switch(name="t", level="spine", parent="s"),
                    Switch(name="u", level="spine"),
                    Switch(name="v", level="leaf", parent="u"),
                )
            },
            "levels must have one order, got",
        ),
    ],
)
def test_nonsense_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Cluster(**{"nodes": (NODE,), "switches": (SWITCH,), **fields})


def test_gpus_must_be_those_of_the_server():
    server = simulated("dgx-h100")

    with pytest.raises(ValueError, match="node n: num_gpus must be 8, those of its server"):
        ClusterNode(name="n", server=server, num_gpus=4)


def test_single_values_are_checked():
    with pytest.raises(ValueError, match="switch s: level must be a name other than nvlink"):
        Switch(name="s", level="nvlink")
    with pytest.raises(ValueError, match="uplink_bytes_per_s must be positive"):
        ClusterNode(name="n", uplink_bytes_per_s=0.0)
    with pytest.raises(ValueError, match="name must be text without blanks"):
        ClusterNode(name=" n")
    with pytest.raises(ValueError, match="one of any, leaf; got 'rack'"):
        Cluster(nodes=(NODE,), switches=(SWITCH,)).level("rack")


@given(depth=st.integers(1, 6))
def test_a_chain_of_switches_has_as_many_levels(depth):
    switches = tuple(
        Switch(name=f"s{at}", level=f"l{at}", parent=f"s{at + 1}" if at + 1 < depth else None)
        for at in range(depth)
    )
    cluster = Cluster(nodes=(ClusterNode(name="n", switch="s0"),), switches=switches)

    assert len(cluster.levels) == depth
    assert cluster.ancestors("n") == tuple(f"s{at}" for at in range(depth))


def test_ten_thousand_nodes_are_built_in_no_time():
    start = time.perf_counter()
    cluster = regular_cluster(10_000)

    assert len(cluster.levels[0].unit_of_node) == 10_000
    assert time.perf_counter() - start < 2.0  # 0.04 s on one core
