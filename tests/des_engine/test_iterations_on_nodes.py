"""Domains of several nodes: passes, messages and sums of gradients against hand-computed cases."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FrameType

import pytest
from examples import examples
from hypothesis import given, settings
from noded import noded_cases
from sharing import FEW, equal_world, gpus, replicas, simulate_alone, with_parameters
from strategies import corrections, unit_workload

from des import Domain, Nodes, Parallelism, Placement, Plan, Topology, simulate
from des.compiled.pack import pack
from des.program.lowering import lower


def on_nodes(num_gpus: int, size: int, *, cards: int, outer: tuple[float, float]) -> Domain:
    """GPUs of 1 FLOP/s that reach each other at 8 bytes/s and 0.5 s inside a node."""
    nodes = Nodes(
        gpus_per_node=size,
        nics_per_node=cards,
        nic_bandwidth_bytes_per_s=outer[0],
        nic_latency_s=outer[1],
        tensor_across_nodes=True,
    )
    return replace(gpus("A", num_gpus, (8.0, 0.5)), nodes=nodes)


def test_tensor_groups_inside_a_node_do_not_see_the_cards():
    """As on one level: 2 (0.5 + 4 / 8) = 2 s an all-reduce, two of them a pass."""
    workload = unit_workload([(1, 2)], num_microbatches=1, message_bytes=8.0)

    found = simulate_alone(on_nodes(4, 2, cards=1, outer=(1e-3, 9.0)), workload, tensor=2)
    assert [span.end_s for span in found.spans] == [0.5 + 4, 0.5 + 4 + 1 + 4]


def test_a_tensor_group_over_two_nodes_by_hand():
    """8 bytes on 2 nodes of 2 GPUs with 2 cards of 2 bytes/s and 1 s.

    Ring: 2 (2 x 0.5 + 1 x 1 + 6 / 4) = 7 s; tree: 2 (0.5 + 1 + 8 / 4) = 7 s. Two of them a pass.
    """
    workload = unit_workload([(1, 2)], num_microbatches=1, message_bytes=8.0)

    found = simulate_alone(on_nodes(4, 2, cards=2, outer=(2.0, 1.0)), workload, tensor=4)
    assert [span.end_s for span in found.spans] == [0.25 + 14, 0.25 + 14 + 0.5 + 14]


@pytest.mark.parametrize(("cards", "transfer_s"), [(2, 4.0), (1, 8.0)])
def test_devices_of_different_nodes_send_over_their_cards(cards, transfer_s):
    """Each of two GPUs sends its replica's 4 bytes at 1 byte/s, or at half of it, and 1 s."""
    workload = unit_workload([(2, 4)] * 2, num_microbatches=1, message_bytes=8.0)

    found = simulate_alone(
        on_nodes(4, 2, cards=cards, outer=(1.0, 1.0)), workload, data=2, pipeline=2
    )
    start_s = [span.start_s for span in found.spans if span.stage == 1]
    assert start_s[0] == 1.0 + transfer_s + 1.0


def test_tensor_groups_send_parts_to_another_node_and_gather_them():
    """Of 8 bytes each of two GPUs sends 4 at 1 byte/s, 1 s; the other 4 come at 8 bytes/s, 0.5 s.

    8 s + 1 s where the wires inside gather too slowly: 0.5 bytes/s and 0.5 s.
    """
    workload = unit_workload([(2, 4)] * 2, num_microbatches=1, message_bytes=8.0)
    quick = on_nodes(4, 2, cards=2, outer=(1.0, 1.0))
    slow = replace(quick, intra_bandwidth_bytes_per_s=0.5)
    sums_s = {quick: 2 * 2 * (0.5 + 0.5), slow: 2 * 2 * (0.5 + 8.0)}
    for domain, sent_s in ((quick, 4.0 + 1.0 + 1.0), (slow, 8.0 + 1.0)):
        found = simulate_alone(domain, workload, tensor=2, pipeline=2)
        first, *_ = (span for span in found.spans if span.stage == 1)
        assert first.start_s == 1.0 + sums_s[domain] + sent_s


def test_devices_of_one_node_send_inside_it():
    """The first border lies in a node (8 / 8 + 0.5 s), the second between two (8 / 1 + 1 s)."""
    workload = unit_workload([(1, 2)] * 4, num_microbatches=1, message_bytes=8.0)

    found = simulate_alone(on_nodes(4, 2, cards=1, outer=(1.0, 1.0)), workload, pipeline=4)
    forward = [span for span in found.spans if span.kind == "F"]
    starts_s = sorted(span.start_s for span in forward)
    assert starts_s == [0.0, 1 + 1.5, 2 + 1.5 + 9, 3 + 1.5 + 9 + 1.5]


def test_replicas_of_all_nodes_sum_up_over_the_cards():
    """16 bytes of gradients on 4 nodes of 2 GPUs: n = 8, k = 4, one card of 2 bytes/s and 1 s.

    Ring: 2 (4 x 0.5 + 3 x 1 + 14 / 2) = 24 s; tree: 2 (0.5 + 2 x 1 + 16 / 2) = 21 s.
    """
    workload = with_parameters(unit_workload([(8, 16)], num_microbatches=1), 8.0)

    found = simulate_alone(on_nodes(8, 2, cards=1, outer=(2.0, 1.0)), workload, data=8)
    assert found.makespan_s == pytest.approx(3 + 21)
    sharded = simulate_alone(
        on_nodes(8, 2, cards=1, outer=(2.0, 1.0)), workload, data=8, sharding="optimiser"
    )
    assert sharded.makespan_s == pytest.approx(3 + 24)  # every GPU needs its part first


def test_parts_for_other_domains_are_scattered_by_rings():
    """Half a ring, 12 s, before and after 2 x 8 / 1 s between the domains; trees leave no parts."""
    domain = on_nodes(8, 2, cards=1, outer=(2.0, 1.0))
    pair = equal_world(2, link=(1.0, 0.0), num_gpus=8)
    world = replace(pair, domains=tuple(replace(domain, name=each.name) for each in pair.domains))
    workload = with_parameters(unit_workload([(8, 16)], num_microbatches=2), 8.0)
    chosen = replicas([0], [1], parallelism=(Parallelism(data=8),) * 2)

    assert simulate(world, workload, chosen).makespan_s == pytest.approx(3 + 12 + 16 + 12)


def calls_of(work: Callable[[], object]) -> int:
    """Calls of Python functions that some work makes once its caches are filled."""
    work()
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_equal_replicas_cost_the_simulator_nothing():
    """64 to 16,384 GPUs of one domain: as many passes and records of the twin, 1 % more calls."""
    workload = with_parameters(
        unit_workload([(1, 2)] * 4, num_microbatches=8, message_bytes=8.0), 8.0
    )
    sizes, counts = [], []
    for data in (8, 64, 2048):
        topology = Topology.of([on_nodes(8 * data, 8, cards=8, outer=(2.0, 1e-3))], [])
        chosen = Plan(
            placement=Placement(domain_of_layer=(0,) * 4),
            parallelism=(Parallelism(tensor=2, data=data, pipeline=4),),
        )
        spans = simulate(topology, workload, chosen).spans
        records = [len(part) for part in pack(topology, lower(topology, workload, chosen))]
        sizes.append((len(spans), records))
        counts.append(calls_of(partial(simulate, topology, workload, chosen)))
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes[0][0] == 2 * 4 * 8
    assert max(counts) <= 1.01 * min(counts)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=noded_cases(), found=corrections())
def test_factors_on_links_inside_domains_are_those_of_their_cards_too(case, found):
    topology, workload, chosen = case
    bandwidth, latency = found.intra_bandwidth_factor, found.intra_latency_factor
    domains = []
    for domain in topology.domains:
        nodes = domain.nodes and replace(
            domain.nodes,
            nic_bandwidth_bytes_per_s=domain.nodes.nic_bandwidth_bytes_per_s * bandwidth,
            nic_latency_s=domain.nodes.nic_latency_s * latency,
        )
        domains.append(
            replace(
                domain,
                nodes=nodes,
                intra_bandwidth_bytes_per_s=domain.intra_bandwidth_bytes_per_s * bandwidth,
                intra_latency_s=domain.intra_latency_s * latency,
            )
        )
    other = replace(topology, domains=tuple(domains))
    rest = replace(found, intra_bandwidth_factor=1.0, intra_latency_factor=1.0)
    assert simulate(topology, workload, chosen, found) == simulate(other, workload, chosen, rest)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=noded_cases())
def test_one_node_is_a_domain_without_nodes(case):
    """The very same result, whatever the cards."""
    topology, workload, chosen = case
    one_node = [
        replace(
            domain,
            nodes=Nodes(
                gpus_per_node=domain.num_gpus,
                nics_per_node=1,
                nic_bandwidth_bytes_per_s=1.0,
                nic_latency_s=1.0,
            ),
        )
        for domain in topology.domains
    ]
    none = [replace(domain, nodes=None) for domain in topology.domains]
    results = [
        simulate(replace(topology, domains=tuple(domains)), workload, chosen)
        for domains in (one_node, none)
    ]
    assert results[0] == results[1]
