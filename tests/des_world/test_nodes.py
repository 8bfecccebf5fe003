"""Nodes of a domain: their checks, their cards, and the tensor groups that they allow."""

from dataclasses import replace

import pytest
from sharing import gpus
from strategies import unit_workload

from des import Nodes, Parallelism, Placement, Plan, Topology

EIGHTS = Nodes(gpus_per_node=8, nics_per_node=4, nic_bandwidth_bytes_per_s=25e9, nic_latency_s=5e-6)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("gpus_per_node", 0, "a whole number from 1"),
        ("nics_per_node", 1.5, "a whole number from 1"),
        ("nic_bandwidth_bytes_per_s", 0.0, "positive and finite"),
        ("nic_latency_s", -1.0, "finite and not negative"),
        ("tensor_across_nodes", 1, "True or False"),
    ],
)
def test_a_bad_figure_is_refused_by_name(field, value, allowed):
    with pytest.raises(ValueError, match=rf"nodes: {field} must be {allowed}.*got {value}"):
        replace(EIGHTS, **{field: value})


def test_a_domain_holds_whole_nodes():
    assert replace(gpus("A", 24), nodes=EIGHTS).nodes == EIGHTS
    with pytest.raises(
        ValueError,
        match=r"domain A: num_gpus must be a whole multiple of nodes.gpus_per_node, 8; got 12",
    ):
        replace(gpus("A", 12), nodes=EIGHTS)


@pytest.mark.parametrize(
    ("num_senders", "num_groups", "cards"),
    [
        (1, 1, 1),  # one message takes one card
        (2, 1, 2),
        (8, 1, 4),  # all cards
        (1, 8, 0.5),  # half a card each
        (2, 4, 1),
        (4, 1, 4),
    ],
)
def test_groups_of_a_node_share_its_cards(num_senders, num_groups, cards):
    found = EIGHTS.outer_bandwidth_bytes_per_s(num_senders, num_groups)
    assert found == cards * 25e9


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
def test_groups_that_fill_a_node_are_allowed(tensor):
    assert EIGHTS.allows_tensor(tensor, 64)


@pytest.mark.parametrize("tensor", [3, 16])
def test_wider_groups_need_the_key(tensor):
    assert not EIGHTS.allows_tensor(tensor, 48)
    assert replace(EIGHTS, tensor_across_nodes=True).allows_tensor(tensor, 48) is (tensor == 16)
    assert EIGHTS.allows_tensor(3, 6)  # all in one node


def check(nodes: Nodes, tensor: int) -> None:
    plan = Plan(
        placement=Placement(domain_of_layer=(0,)), parallelism=(Parallelism(tensor=tensor),)
    )
    topology = Topology.of([replace(gpus("A", 32), nodes=nodes)], [])
    plan.check_against(topology, unit_workload([(1, 2)], num_microbatches=1))


def test_a_plan_wider_than_a_node_is_refused_in_one_line():
    with pytest.raises(
        ValueError,
        match=r"plan: parallelism of domain A: tensor must divide the 8 GPUs of a node, as "
        r"nodes\.tensor_across_nodes is False; got 16",
    ):
        check(EIGHTS, 16)
    across = replace(EIGHTS, tensor_across_nodes=True)
    check(across, 16)
    with pytest.raises(
        ValueError, match="tensor must divide the 8 GPUs of a node or be a multiple of them; got 12"
    ):
        check(across, 12)
