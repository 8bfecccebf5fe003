"""Sets of nodes by hand: levels, best fit, limits, data, other jobs, and refusals."""

import re

import pytest
from cluster_cases import regular_cluster

from agents.devices.node_request import NodeRequest
from agents.devices.node_sets import choose_nodes
from des.devices.cluster import Block, Cluster, ClusterNode, Switch


def racks(*sizes: int, per_spine: int = 2) -> Cluster:
    """Racks of some sizes, two and two below a spine; each node is named ``rack.place``."""
    return Cluster(
        nodes=tuple(
            ClusterNode(name=f"{rack}.{at}", switch=f"r{rack}")
            for rack, size in enumerate(sizes)
            for at in range(size)
        ),
        switches=(
            *(
                Switch(name=f"r{rack}", level="rack", parent=f"s{rack // per_spine}")
                for rack in range(len(sizes))
            ),
            *(
                Switch(name=f"s{at}", level="spine", parent="core")
                for at in range(-(-len(sizes) // per_spine))
            ),
            Switch(name="core", level="core"),
        ),
    )


def chosen(cluster: Cluster, count: int, **wishes: object):
    """Answer with all nodes free."""
    free = [node.name for node in cluster.nodes]
    return choose_nodes(cluster, free, NodeRequest(count=count, **wishes))  # type: ignore[arg-type]


def test_the_smallest_rack_that_suffices_is_taken():
    found = chosen(racks(4, 3, 2, 4), 2)

    assert found.nodes == ("2.0", "2.1")
    assert (found.level, found.unit) == ("rack", "r2")
    assert found.num_units == (("core", 1), ("spine", 1), ("rack", 1))
    assert found.is_exact


def test_a_set_larger_than_a_rack_fills_one_spine_with_the_fewest_racks():
    """Spine s0 has 4 + 2 nodes, s1 has 3 + 3: both hold 5 in two racks, 1 node left in each."""
    found = chosen(racks(4, 2, 3, 3), 5)

    assert found.unit == "s0"
    assert found.num_units == (("core", 1), ("spine", 1), ("rack", 2))


def test_whole_racks_come_before_broken_ones():
    """4 + 4 leaves nothing over in its racks; 5 + 5 would leave two."""
    assert chosen(racks(5, 5, 4, 4), 8).unit == "s1"


def test_a_set_larger_than_a_spine_spans_the_fewest_spines():
    found = chosen(racks(4, 4, 1, 1, 4, 4), 10)

    assert found.num_units == (("core", 1), ("spine", 2), ("rack", 3))
    assert (found.level, found.unit) == ("core", "core")


def test_required_levels_hold_all_or_name_the_largest():
    cluster = racks(4, 3, 2, 4)

    assert chosen(cluster, 4, required="rack").unit == "r0"
    message = "required rack must have 5 free nodes; the largest, r0, has 4; level spine can hold"
    with pytest.raises(ValueError, match=message):
        chosen(cluster, 5, required="rack")


def test_preferred_levels_fall_back_upward():
    cluster = racks(4, 3, 2, 4)

    assert chosen(cluster, 4, preferred="rack").level == "rack"
    assert chosen(cluster, 7, preferred="rack").level == "spine"
    assert chosen(cluster, 9, preferred="rack").level == "core"
    assert chosen(cluster, 6, preferred="rack", required="spine").unit == "s1"


def test_a_preferred_level_above_the_required_one_is_refused():
    with pytest.raises(ValueError, match="preferred must be a level of at most rack"):
        chosen(racks(4, 4), 2, required="rack", preferred="spine")


def test_spread_limits_hold_on_every_level():
    found = chosen(racks(4, 4, 4, 4), 4, spread=(("rack", 1),))

    assert found.num_units == (("core", 1), ("spine", 2), ("rack", 4))
    with pytest.raises(ValueError, match="count must be at most 4 with at most 1 a rack, got 5"):
        chosen(racks(4, 4, 4, 4), 5, spread=(("rack", 1),))
    with pytest.raises(
        ValueError, match=r"required spine must have 4 .* at most 1 a rack; the larg"
    ):
        chosen(racks(4, 4, 4, 4), 4, spread=(("rack", 1),), required="spine")


def test_limits_of_a_level_do_not_hold_for_nodes_outside_it():
    cluster = Cluster(
        nodes=(
            ClusterNode(name="a", block="b"),
            ClusterNode(name="c", switch="z"),
            ClusterNode(name="d", block="b"),
        ),
        switches=(Switch(name="z", level="zone"),),
        blocks=(Block(name="b"),),
    )

    assert chosen(cluster, 2, spread=(("zone", 1),)).nodes == ("a", "d")


def test_nodes_near_the_data_come_first_at_the_same_level():
    found = chosen(racks(2, 4, 4, 4), 2, data=("r3",))
    part = chosen(racks(2, 4, 4, 4), 6, data=("3.0", "3.1"))

    assert (found.unit, found.near_fraction) == ("r3", 1.0)
    assert (part.unit, part.near_fraction) == ("s1", 2 / 6)


def test_preferred_nodes_come_after_data():
    found = chosen(racks(4, 4, 4), 2, preferred_nodes=("2.3", "0.1"), data=("r0",))

    assert found.nodes == ("0.0", "0.1")
    assert found.num_preferred == 1
    assert chosen(racks(4, 4, 4), 1, preferred_nodes=("2.3",)).nodes == ("2.3",)


def test_units_with_nodes_of_other_jobs_are_avoided():
    cluster = racks(2, 4, 4, 4)
    found = chosen(cluster, 2, apart="rack", others=("0.0", "1.0"))
    far = chosen(cluster, 2, apart="spine", others=("0.0",))

    assert (found.unit, far.unit) == ("r2", "r2")
    with pytest.raises(ValueError, match="at most 8, as 14 nodes are free, 8 of them apart from"):
        chosen(cluster, 9, apart="spine", others=("0.0",))


def crossing() -> Cluster:
    """Two racks of 4, and NVLink domains of 4 that take half of each."""
    return Cluster(
        nodes=tuple(
            ClusterNode(name=f"n{at}", switch=f"r{at // 4}", block=f"b{at % 2}") for at in range(8)
        ),
        switches=(Switch(name="r0", level="rack"), Switch(name="r1", level="rack")),
        blocks=(Block(name="b0"), Block(name="b1")),
    )


def test_nvlink_domains_across_racks_can_be_required():
    found = chosen(crossing(), 4, required="nvlink")

    assert found.nodes == ("n0", "n2", "n4", "n6")
    assert (found.level, found.unit, found.is_exact) == ("nvlink", "b0", True)


def test_limits_across_the_switches_are_greedy_and_say_so():
    found = chosen(crossing(), 2, spread=(("nvlink", 1),))

    assert (found.nodes, found.is_exact) == (("n0", "n1"), False)


def test_nvlink_domains_inside_racks_are_a_level_of_the_tree():
    cluster = Cluster(
        nodes=tuple(ClusterNode(name=f"n{at}", switch="r", block=f"b{at // 2}") for at in range(6)),
        switches=(Switch(name="r", level="rack"),),
        blocks=tuple(Block(name=f"b{at}") for at in range(3)),
    )
    free = ["n1", "n2", "n3", "n5"]

    assert choose_nodes(cluster, free, NodeRequest(count=2)).nodes == ("n2", "n3")
    assert choose_nodes(cluster, free, NodeRequest(count=2)).level == "nvlink"


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"count": 0}, "count must be a whole number from 1"),
        ({"count": 5}, "count must be at most 4, as 4 nodes are free; got 5"),
        ({"count": 1, "required": "row"}, "level must be one of any, core, spine, rack; got 'row'"),
        ({"count": 1, "data": ("x",)}, "data must be names of nodes, switches or blocks, got 'x'"),
        ({"count": 1, "preferred_nodes": ("x",)}, "unknown node: 'x'"),
        ({"count": 1, "apart": "rack"}, "apart must be given with the nodes of other jobs"),
        ({"count": 1, "spread": (("rack", 0),)}, "spread over rack must be a whole number from 1"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(wishes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        chosen(racks(2, 2), **wishes)


def test_free_nodes_are_known_and_differ():
    cluster = racks(2)

    with pytest.raises(ValueError, match="unknown node: 'x'"):
        choose_nodes(cluster, ["x"], NodeRequest(count=1))
    with pytest.raises(ValueError, match=r"node given twice: '0\.0'"):
        choose_nodes(cluster, ["0.0", "0.0"], NodeRequest(count=1))


def test_nodes_below_no_switch_can_be_chosen_anywhere():
    cluster = Cluster(nodes=tuple(ClusterNode(name=f"n{at}") for at in range(3)))

    assert chosen(cluster, 2).nodes == ("n0", "n1")
    assert chosen(cluster, 2).level == "any"


def test_sixty_four_of_ten_thousand_nodes():
    """32 racks of 16 a spine: 4 whole racks of the last spine, which has the fewest nodes."""
    found = chosen(regular_cluster(10_000), 64)

    assert found.unit == "sp19"
    assert found.num_units == (("datacentre", 1), ("spine", 1), ("rack", 4))
