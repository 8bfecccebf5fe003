"""Pipelines that share domains and devices: bidirectional schedules."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW, equal_world, gpus, model, parallelisms, replicas, shortest_runs, sums
from strategies import STATIC_SCHEDULES, placements, topologies, workloads

from calibration.cases.case import PlacementCase
from des import (
    EVERY_STEP,
    DiLoCo,
    GradientExchange,
    Nodes,
    Parallelism,
    Plan,
    Topology,
    Workload,
    domain_memory,
    simulate,
)
from des.compiled.simulate import simulate_compiled
from des.plan.placement import device_numbers


@st.composite
def shared_cases(draw: st.DrawFn) -> tuple[Topology, Workload, Plan]:
    """Two or three pipelines anywhere, with devices of several GPUs and chunks, and DiLoCo."""
    topology, workload = draw(topologies(min_domains=1)), draw(workloads())
    count = draw(st.integers(1, min(3, workload.num_microbatches)))
    first, *others = (
        draw(placements(topology.num_domains, workload.num_layers)) for _ in range(count)
    )
    longest = shortest_runs([first, *others], topology)
    ways = tuple(
        draw(parallelisms(domain.num_gpus, max_devices=most, max_chunks=2))
        for domain, most in zip(topology.domains, longest, strict=True)
    )
    plan = Plan(
        placement=first,
        replicas=tuple(others),
        shares_domains=True,
        schedule=draw(st.sampled_from(STATIC_SCHEDULES)),
        parallelism=draw(st.sampled_from([ways, ways, ()])),
        synchronisation=draw(st.sampled_from([EVERY_STEP, DiLoCo(steps_between=2)])),
        exchange=GradientExchange(
            overlapped=draw(st.booleans()), bucket_bytes=draw(st.none() | st.floats(1e6, 4e9))
        ),
    )
    return topology, workload, plan


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=shared_cases(), step=st.integers(0, 1))
def test_the_twin_is_equal_and_devices_do_one_thing_at_a_time(case, step):
    topology, workload, plan = case
    found = simulate(topology, workload, plan, step=step)

    assert simulate_compiled(topology, workload, plan, step=step) == found
    devices = device_numbers(plan.stages)
    last_end_s = dict.fromkeys(devices, 0.0)
    for span in sorted(found.spans, key=lambda span: (span.start_s, span.end_s)):
        device = devices[span.stage]
        assert span.start_s >= last_end_s[device]
        last_end_s[device] = span.end_s
    done = [(span.stage, span.kind, span.microbatch) for span in found.spans]
    assert len(set(done)) == len(done)
    assert found.makespan_s >= max(last_end_s.values()) * (1 - 1e-12)


def towards_each_other(*, shares_domains: bool = True, **fields: object) -> Plan:
    """Two pipelines over domains 0 and 1, in opposite directions."""
    return replicas([0, 1], [1, 0], shares_domains=shares_domains, **fields)


def test_two_pipelines_towards_each_other_have_no_bubble_by_hand():
    """Both domains: own F 0-1, the other's F 1-2, its B 2-4, own B 4-6; 1F1B takes 9 s."""
    topology, workload = equal_world(2), model(2, 2, 0.0)

    found = simulate(topology, workload, towards_each_other())
    assert found.makespan_s == 6.0
    assert found.bubble_fraction == 0.0
    assert simulate(topology, workload, replicas([0, 1])).makespan_s == 9.0


def test_devices_of_one_domain_are_passed_the_other_way_by_hand():
    """The same in one domain of two GPUs, whose gradients of 8 bytes go over its wire in halves.

    Both layers' sums are two messages of 4 bytes each way, at 4 bytes a second: the first layer of
    each is done at 6 s. The sum of the last layers, from 4 s on, waits for nothing.
    """
    parallelism = (Parallelism(pipeline=2),)
    plan = replicas([0, 0], [0, 0], shares_domains=True, parallelism=parallelism)
    assert [(stage.device, stage.first_layer) for stage in plan.stages] == [
        (0, 0),
        (1, 1),
        (1, 0),
        (0, 1),
    ]
    topology = Topology.of([gpus("A", 2, (4.0, 0.0))], [])
    workload = replace(model(2, 2, 4.0), message_bytes=0.0)

    found = simulate(topology, workload, plan)
    # halves of layer 1's sum 4-5 and 5-6 on each wire, those of layer 0's 6-7 and 7-8
    assert found.makespan_s == 8.0


def test_sums_of_two_layers_on_one_device_take_no_time_by_hand():
    """Both pipelines in one domain that is one device: 4 passes of 1 s and 4 of 2 s, no wires."""
    found = simulate(
        equal_world(1), model(2, 2, 1e9), replicas([0, 0], [0, 0], shares_domains=True)
    )

    assert found.makespan_s == 12.0
    assert not sums(found)


def test_sums_between_domains_take_their_links_as_ever():
    """2 layers of 4 parameters, 8 bytes each, over 4 bytes/s: 8 s behind the last pass."""
    apart = simulate(equal_world(2, link=(4.0, 0.0)), model(2, 2, 4.0), towards_each_other())

    assert len(sums(apart)) == 8
    assert {move.kind for move in apart.transfers if move.arrival_s > 6.0} == {"G"}


def test_devices_hold_the_layers_of_both_pipelines():
    topology, workload = equal_world(2), model(2, 2, 1.0)
    alone = domain_memory(topology, workload, replicas([0, 1]))
    both = domain_memory(topology, workload, towards_each_other())

    for one, two in zip(alone, both, strict=True):
        assert two.model_state_bytes == 2 * one.model_state_bytes


def test_sums_between_nodes_take_the_card_by_hand():
    """Two devices on a node each: 8 bytes in halves over a card of 1 byte/s, in turn."""
    nodes = Nodes(gpus_per_node=1, nics_per_node=1, nic_bandwidth_bytes_per_s=1.0,
                  nic_latency_s=0.0, tensor_across_nodes=False)  # fmt: skip
    topology = Topology.of([replace(gpus("A", 2, (4.0, 0.0)), nodes=nodes)], [])
    plan = replicas([0, 0], [0, 0], shares_domains=True, parallelism=(Parallelism(pipeline=2),))
    found = simulate(topology, replace(model(2, 2, 4.0), message_bytes=0.0), plan)

    # halves on each card: layer 1's 4-8, layer 0's 8-12, layer 1's 12-16, layer 0's 16-20
    assert found.makespan_s == 20.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"shares_domains": False},
            "must serve one replica, got domain 0 in two, which shares_domains allows",
        ),
        (
            {"schedule": "greedy"},
            r"schedule must be one that counts alone decide .*; got 'greedy' and domain 0",
        ),
        ({"shares_domains": 1}, "shares_domains must be True or False, got 1"),
    ],
)
def test_plans_that_cannot_share_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        towards_each_other(**fields)


def test_they_cannot_be_exported():
    with pytest.raises(ValueError, match="shares_domains must be False"):
        PlacementCase(topology=equal_world(2), workload=model(2, 2, 1.0), plan=towards_each_other())
