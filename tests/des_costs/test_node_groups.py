"""Groups of GPUs on nodes: by closed forms, and GPU by GPU."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noded import gpus_of_device, members_of_nodes, sizes_of_nodes
from sharing import gpus, parallelisms
from sparse_jobs import small, small_job, whole_plan

from des import NO_CORRECTIONS, Domain, Nodes, Parallelism, Topology
from des.costs.bound_stages import bound_stages
from des.costs.copy_collectives import held_parameters
from des.costs.inner_sums import half_sum_s
from des.costs.node_groups import data_group, nodes_of, outer_wire, tensor_group
from des.plan.buckets import buckets_of

INNER = (7.0, 0.25)
MOST_GPUS = 48


def domain_of(num_gpus: int, size: int, *, cards: int = 3, across: bool = False) -> Domain:
    """GPUs on nodes whose cards have 2 bytes/s and 3 s."""
    nodes = Nodes(
        gpus_per_node=size,
        nics_per_node=cards,
        nic_bandwidth_bytes_per_s=2.0,
        nic_latency_s=3.0,
        tensor_across_nodes=across,
    )
    one = gpus("A", num_gpus, INNER)
    return Domain(**{field: getattr(one, field) for field in one.__slots__} | {"nodes": nodes})


@st.composite
def shared_domains(draw: st.DrawFn) -> tuple[Domain, Parallelism, int]:
    """A domain of nodes, an allowed way to share its GPUs, and one of its devices."""
    num_gpus = draw(st.integers(1, MOST_GPUS))
    shared = draw(parallelisms(num_gpus, max_devices=MOST_GPUS))
    size, across = draw(st.sampled_from(sizes_of_nodes(num_gpus, shared)))
    domain = domain_of(num_gpus, size, cards=draw(st.integers(1, 12)), across=across)
    return domain, shared, draw(st.integers(0, shared.pipeline - 1))


@given(first=st.integers(0, 40), count=st.integers(1, 40), size=st.integers(1, 12))
def test_nodes_of_places_are_those_counted_one_by_one(first, count, size):
    members = members_of_nodes(list(range(first, first + count)), size)
    expected = len(members), max(members.values()), min(members.values())
    assert nodes_of(first, count, size) == expected


@given(case=shared_domains())
def test_every_tensor_group_has_the_nodes_counted_one_by_one(case):
    domain, shared, device = case
    found = tensor_group(domain, shared)
    for replica in gpus_of_device(shared, device):
        members = members_of_nodes(replica, domain.nodes.gpus_per_node)
        assert (found.num_ranks, found.num_nodes) == (shared.tensor, len(members))
        assert found.most_per_node == max(members.values())
        if len(members) > 1:  # alone on whole nodes
            cards = min(domain.nodes.gpus_per_node, domain.nodes.nics_per_node)
            assert found.outer_bandwidth_bytes_per_s == cards * 2.0


@given(case=shared_domains())
def test_data_groups_have_the_nodes_and_cards_counted_one_by_one(case):
    """All groups of a device are alike; each has its part of the cards where it has least."""
    domain, shared, device = case
    found, size = data_group(domain, shared, device), domain.nodes.gpus_per_node
    replicas = gpus_of_device(shared, device)
    groups = [[replica[place] for replica in replicas] for place in range(shared.tensor)]
    in_nodes = [members_of_nodes(group, size) for group in groups]
    groups_of_node = Counter(node for members in in_nodes for node in members)
    for members in in_nodes:
        assert (found.num_ranks, found.num_nodes) == (shared.data, len(members))
        assert found.most_per_node == max(members.values())
        if len(members) > 1:
            shares = [
                min(count, domain.nodes.nics_per_node / groups_of_node[node])
                for node, count in members.items()
            ]
            assert found.outer_bandwidth_bytes_per_s == min(shares) * 2.0
            assert found.outer_latency_s == 3.0


@given(case=shared_domains(), distance=st.integers(1, 4))
def test_the_slowest_pair_of_partners_is_that_found_one_by_one(case, distance):
    """Partners are in the next device, or further on where chunks go round in a loop."""
    domain, shared, device = case
    size = domain.nodes.gpus_per_node
    senders, receivers = (
        [gpu // size for replica in gpus_of_device(shared, number) for gpu in replica]
        for number in (device, device + distance)
    )
    crossing = [pair for pair in zip(senders, receivers, strict=True) if pair[0] != pair[1]]
    found = outer_wire(domain, shared, device, distance=distance)
    if shared.num_gpus <= size or not crossing:
        assert device + distance >= shared.pipeline or found is None
        return
    sent, received = (Counter(node) for node in zip(*crossing, strict=True))
    most = max([*sent.values(), *received.values()])
    share = min(1.0, domain.nodes.nics_per_node / most)
    assert found == (share * 2.0, 3.0)


@pytest.mark.parametrize(
    ("shared", "num_nodes", "most", "outer"),
    [
        (Parallelism(data=32), 4, 8, 8.0),  # 4 cards of 2 bytes/s for one group
        (Parallelism(tensor=8, data=4), 4, 1, 1.0),  # for 8 groups: half a card each
        (Parallelism(tensor=4, data=8), 4, 2, 2.0),  # for 4 groups
        (Parallelism(tensor=2, data=4, pipeline=4), 1, 4, 1.0),  # a node for each device
    ],
)
def test_replicas_on_four_nodes_of_eight_by_hand(shared, num_nodes, most, outer):
    found = data_group(domain_of(32, 8, cards=4), shared, 0)
    assert (found.num_nodes, found.most_per_node) == (num_nodes, most)
    assert found.outer_bandwidth_bytes_per_s == outer


def test_a_domain_without_nodes_is_one_level():
    one = gpus("A", 32, INNER)
    shared = Parallelism(tensor=4, data=4, pipeline=2)
    for found in (tensor_group(one, shared), data_group(one, shared, 1)):
        assert found.one_level == INNER
    assert outer_wire(one, shared, 0) is None


def test_few_bytes_are_summed_over_nodes_by_half_a_tree():
    """2 nodes of 8: a half tree passes 7 inner hops and 1 outer one, half a ring 14 and 1.

    Of 3 cards at 2 bytes/s, gradients of 2 bytes pass at 6 bytes/s; of half a ring 15 in 16.
    """
    workload = small_job(small())
    plan = whole_plan(workload, data=16)
    num_bytes = 2.0 * held_parameters(workload, 0, 2, plan.parallelism[0]).common
    (bucket,) = buckets_of(workload, plan, 0)

    for latency_s, expected_s in (
        (1e4, 7 * 1e4 + 3.0 + num_bytes / 6.0),
        (0.0, 3.0 + num_bytes / 6.0 * 15 / 16),
    ):
        domain = replace(domain_of(16, 8), intra_latency_s=latency_s)
        stages = bound_stages(Topology.of([domain], []), plan)
        half_s = half_sum_s(workload, stages[0], bucket, NO_CORRECTIONS)
        assert half_s == pytest.approx(expected_s)
