"""Sharing layers among the GPUs of a domain: hand cases, closed forms, and laws for any plan."""

import dataclasses
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW, gpus, parallel_cases, with_parameters
from strategies import (
    corrections,
    plan,
    unit_workload,
    world,
)

from des import (
    NO_CORRECTIONS,
    Corrections,
    Parallelism,
    Placement,
    Plan,
    Topology,
    simulate,
)
from des.collectives import ring_all_reduce_s
from des.plan import device_numbers, plan_stages
from des.schedules import MESSAGE_OF
from des.stage_times import compute_rate_flops_per_s, stage_times_s


def times(result, stage):
    """Start and end of each pass of a stage, by names such as ``"F0"``."""
    return {
        f"{span.kind}{span.microbatch}": (span.start_s, span.end_s)
        for span in result.spans
        if span.stage == stage
    }


def alone(domain, workload, *, schedule="1f1b", **parallelism):
    """Simulate all layers on one domain whose GPUs share them."""
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,) * workload.num_layers),
        schedule=schedule,
        parallelism=(Parallelism(**parallelism),),
    )
    return simulate(Topology.of([domain], []), workload, chosen)


# One device of several GPUs.


def test_data_parallelism_by_hand():
    """Four GPUs at 1 s and 2 s of work: 2 x 3/4 s, then the sum of gradients.

    5 parameters are 10 bytes: twice 3 steps of 0.25 s + 2.5 bytes at 10 bytes/s.
    """
    workload = with_parameters(unit_workload([(1, 2)], num_microbatches=2), 5.0)

    result = alone(gpus("A", 4, (10.0, 0.25)), workload, data=4)
    assert times(result, 0) == {
        "F0": (0, 0.25),
        "B0": (0.25, 0.75),
        "F1": (0.75, 1.0),
        "B1": (1.0, 1.5),
    }
    assert result.makespan_s == pytest.approx(1.5 + 6 * (0.25 + 0.25))
    assert result.exposed_exchange_s == pytest.approx(3.0)
    assert result.transfers == ()
    (stage,) = result.stages
    assert (stage.busy_s, stage.idle_s) == (1.5, pytest.approx(3.0))


@given(
    data=st.integers(1, 16),
    num_microbatches=st.integers(1, 4),
    inner=st.tuples(st.floats(1.0, 1e3), st.floats(0.0, 1.0)),
    num_parameters=st.floats(0.0, 1e3),
)
def test_data_parallelism_is_a_faster_device_and_one_ring_all_reduce(
    data, num_microbatches, inner, num_parameters
):
    """Without buckets, as there all gradients come at the very end."""
    workload = unit_workload([(1, 2), (3, 4)], num_microbatches=num_microbatches)
    workload = with_parameters(workload, num_parameters)

    result = alone(gpus("A", data, inner), workload, data=data)
    ring_s = ring_all_reduce_s(2 * 2 * num_parameters, data, *inner)
    assert result.makespan_s == pytest.approx(num_microbatches * 10 / data + ring_s)


def test_tensor_parallelism_by_hand():
    """Two layers of 1 s forward, 1 s + 1 s backward, on two GPUs.

    A message is 8 bytes, of which a ring of two sends 4 twice: 2 (0.5 + 4 / 8) = 2 s. Twice a
    layer: 2 x (0.5 + 4) s of F, as much of D, 2 x 0.5 s of W.
    """
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1, message_bytes=8.0)
    domain = gpus("A", 2, (8.0, 0.5))

    whole = alone(domain, workload, tensor=2)
    assert times(whole, 0) == {"F0": (0, 9), "B0": (9, 19)}
    assert whole.makespan_s == 19
    halves = alone(domain, workload, schedule="zb_h1", tensor=2)
    assert times(halves, 0) == {"F0": (0, 9), "D0": (9, 18), "W0": (18, 19)}


def test_replicas_of_a_device_sum_up_their_share_of_the_tensor():
    """Two replicas of two GPUs hold half a message each: 2 (0.5 + 2 / 8) = 1.5 s twice a layer."""
    workload = unit_workload([(1, 2)], num_microbatches=1, message_bytes=8.0)

    result = alone(gpus("A", 4, (8.0, 0.5)), with_parameters(workload, 0.0), tensor=2, data=2)
    assert times(result, 0) == {"F0": (0, 0.25 + 3.0), "B0": (3.25, 3.25 + 0.5 + 3.0)}


@given(
    tensor=st.integers(1, 8),
    passes_s=st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=1, max_size=4),
)
def test_tensor_parallelism_on_free_inner_links_is_one_faster_device(tensor, passes_s):
    """The device that a plan without a parallelism makes of the whole domain."""
    workload = unit_workload(passes_s, num_microbatches=3, message_bytes=8.0)
    domain = gpus("A", tensor)

    shared = alone(domain, workload, tensor=tensor)
    whole = simulate(Topology.of([domain], []), workload, plan(*[0] * len(passes_s)))
    assert shared.spans == whole.spans
    assert shared.makespan_s == whole.makespan_s


def test_gpus_beyond_the_product_stand_idle():
    """Of seven GPUs six work: 6 FLOP/s at an attainable fraction of a half are 3."""
    domain = dataclasses.replace(gpus("A", 7), attainable_fraction=0.5)
    slow = Corrections(compute_time_factor=2.0)

    assert compute_rate_flops_per_s(domain, NO_CORRECTIONS, Parallelism(tensor=2, data=3)) == 3.0
    assert compute_rate_flops_per_s(domain, NO_CORRECTIONS) == 3.5
    assert compute_rate_flops_per_s(domain, slow, Parallelism(tensor=2, data=3)) == 1.5
    assert compute_rate_flops_per_s(domain, slow, Parallelism(data=2, pipeline=3)) == 0.5


# Devices in a row.


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(num_devices=st.integers(1, 6), num_microbatches=st.integers(1, 8))
def test_a_domain_of_p_devices_is_the_textbook_pipeline(schedule, num_devices, num_microbatches):
    """(m + p - 1)(f + b) on free inner links, each device with an equal part of 12 layers."""
    workload = unit_workload([(1, 2)] * 60, num_microbatches=num_microbatches)

    result = alone(gpus("A", num_devices), workload, schedule=schedule, pipeline=num_devices)
    each_s = 60 / num_devices * 3
    assert result.makespan_s == (num_microbatches + num_devices - 1) * each_s
    assert [stage.device for stage in result.stages] == list(range(num_devices))
    assert {stage.domain for stage in result.stages} == {"A"}


def test_messages_queue_for_the_wires_of_a_domain_by_hand():
    """Two devices, forward 1 s, backward 2 s; 8 bytes take 2 s and then 0.25 s, each way its own.

    Device 0: F0 0-1, F1 1-2. F0 leaves 1-3, there at 3.25; F1 leaves 3-5, there at 5.25.
    Device 1: F0 3.25-4.25, F1 5.25-6.25, B0 6.25-8.25, B1 8.25-10.25.
    B0 leaves 8.25-10.25, there at 10.5; B1 leaves 10.25-12.25, there at 12.5.
    Device 0: B0 10.5-12.5, B1 12.5-14.5.
    """
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2, message_bytes=8.0)

    result = alone(gpus("A", 2, (4.0, 0.25)), workload, schedule="gpipe", pipeline=2)
    assert times(result, 0) == {
        "F0": (0, 1),
        "F1": (1, 2),
        "B0": (10.5, 12.5),
        "B1": (12.5, 14.5),
    }
    assert times(result, 1) == {
        "F0": (3.25, 4.25),
        "F1": (5.25, 6.25),
        "B0": (6.25, 8.25),
        "B1": (8.25, 10.25),
    }
    assert result.transfers == ()


def test_replicas_of_neighbouring_devices_send_their_shares_side_by_side():
    """Two replicas a device halve passes and messages: 8 bytes take 1 s."""
    workload = unit_workload([(2, 4)] * 2, num_microbatches=1, message_bytes=8.0)

    result = alone(gpus("A", 4, (4.0, 0.25)), with_parameters(workload, 0.0), data=2, pipeline=2)
    assert times(result, 0) == {"F0": (0, 1), "B0": (6.5, 8.5)}
    assert times(result, 1) == {"F0": (2.25, 3.25), "B0": (3.25, 5.25)}


def test_compression_shrinks_messages_between_domains_only_by_hand():
    """8 bytes, a quarter of them over the WAN at 1 byte/s: 2 s; 1 s between the devices of B."""
    topology = Topology.of(
        [gpus("A", 1), gpus("B", 2, (8.0, 0.0))], world("AB", {"AB": (1, 0), "BA": (1, 0)}).links
    )
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 1, 1)),
        parallelism=(Parallelism(), Parallelism(pipeline=2)),
        activation_compression=4.0,
    )
    workload = unit_workload([(1, 1)] * 3, num_microbatches=1, message_bytes=8.0)

    result = simulate(topology, workload, chosen)
    assert [times(result, stage)["F0"] for stage in range(3)] == [(0, 1), (3, 4), (5, 6)]
    assert [times(result, stage)["B0"] for stage in range(3)] == [(11, 12), (8, 9), (6, 7)]
    assert [link.num_bytes for link in result.links] == [2.0, 2.0]


# Laws for any plan.


@settings(max_examples=2 * FEW, deadline=None)
@given(case=parallel_cases(), found=corrections())
def test_every_pass_starts_as_soon_as_its_input_its_stage_and_its_device_allow(case, found):
    """Inputs within a device are there at once, within a domain they queue for a wire."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, found)
    stages = plan_stages(chosen)
    devices = device_numbers(stages)
    passes_s = stage_times_s(topology, workload, stages, found, chosen.parallelism)
    arrivals = {
        (move.stage + (1 if move.kind == "F" else -1), *move[2:4]): move.arrival_s
        for move in result.transfers
        if move.kind != "G"
    }
    stage_free_s, device_free_s, wire_free_s = (defaultdict(float) for _ in range(3))
    for span in result.spans:  # in the order in which they start on their devices
        own = stages[span.stage]
        start_s = max(stage_free_s[span.stage], device_free_s[devices[span.stage]])
        if span.kind in MESSAGE_OF:
            needs = (span.stage, MESSAGE_OF[span.kind], span.microbatch)
            start_s = max(start_s, arrivals.get(needs, 0.0))
        assert span.start_s == start_s
        assert span.end_s == start_s + passes_s[span.stage][span.kind]
        stage_free_s[span.stage] = device_free_s[devices[span.stage]] = span.end_s
        if span.kind == "W":
            continue
        step = 1 if span.kind == "F" else -1
        after = span.stage + step
        if not 0 <= after < len(stages) or stages[after].domain != own.domain:
            continue
        arrival_s = span.end_s
        if stages[after].device != own.device:
            wire = devices[span.stage], devices[after]
            sharing = chosen.parallelism[own.domain]
            domain = topology.domains[own.domain]
            bytes_s = workload.message_bytes / sharing.data / domain.intra_bandwidth_bytes_per_s
            wire_free_s[wire] = max(span.end_s, wire_free_s[wire]) + bytes_s
            arrival_s = wire_free_s[wire] + domain.intra_latency_s
        arrivals[after, MESSAGE_OF[span.kind], span.microbatch] = arrival_s


@settings(max_examples=FEW, deadline=None)
@given(case=parallel_cases(), step=st.integers(0, 3))
def test_time_and_work_are_conserved(case, step):
    """No device does two things at once; the passes of all replicas are the work of the model."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, step=step)

    busy_s, last_end_s = defaultdict(float), defaultdict(float)
    done = 0.0
    stages = plan_stages(chosen)
    rates = [
        compute_rate_flops_per_s(
            topology.domains[stage.domain], NO_CORRECTIONS, chosen.parallelism_of(stage.domain)
        )
        for stage in stages
    ]
    bare = dataclasses.replace(workload, message_bytes=0.0)
    silent = stage_times_s(
        without_inner_latency(topology), bare, stages, NO_CORRECTIONS, chosen.parallelism
    )
    for span in result.spans:
        device = result.stages[span.stage].domain, result.stages[span.stage].device
        assert span.start_s >= last_end_s[device]
        last_end_s[device] = span.end_s
        busy_s[device] += span.end_s - span.start_s
        done += silent[span.stage][span.kind] * rates[span.stage]
    recomputed = sum(layer.recomputation_flops for layer in workload.layers)
    expected = workload.flops_per_iteration + workload.num_microbatches * recomputed
    assert done == pytest.approx(expected)
    for stage in result.stages:
        assert stage.busy_s + stage.idle_s == pytest.approx(result.makespan_s)
    longest_s = max([*busy_s.values(), *(link.busy_s for link in result.links)])
    assert result.makespan_s >= longest_s * (1 - 1e-9)
    num_used = len(busy_s)
    assert result.bubble_fraction == pytest.approx(
        1 - sum(busy_s.values()) / (num_used * result.makespan_s)
    )


def without_inner_latency(topology):
    return dataclasses.replace(
        topology,
        domains=tuple(
            dataclasses.replace(domain, intra_latency_s=0.0) for domain in topology.domains
        ),
    )


@settings(max_examples=FEW, deadline=None)
@given(case=parallel_cases(), found=corrections())
def test_domains_of_one_gpu_need_no_parallelism(case, found):
    """The very same result, replicas included."""
    topology, workload, chosen = case
    topology = dataclasses.replace(
        topology,
        domains=tuple(dataclasses.replace(domain, num_gpus=1) for domain in topology.domains),
    )
    results = [
        simulate(topology, workload, dataclasses.replace(chosen, parallelism=shared), found)
        for shared in ((), (Parallelism(),) * topology.num_domains)
    ]
    assert results[0] == results[1]


@settings(max_examples=FEW, deadline=None)
@given(case=parallel_cases(fully=True), draw=st.data())
def test_names_and_order_of_domains_do_not_matter(case, draw):
    """Every pass starts and ends at the very same float, and so does every sum of gradients."""
    topology, workload, chosen = case
    count = topology.num_domains
    new_place = draw.draw(st.permutations(range(count)))
    new_name = {f"domain{old}": f"site {new}" for old, new in enumerate(new_place)}
    old_place = [new_place.index(new) for new in range(count)]
    renamed = [dataclasses.replace(each, name=new_name[each.name]) for each in topology.domains]
    moved = Topology.of(
        [renamed[old] for old in old_place],
        [
            dataclasses.replace(link, source=new_name[link.source], target=new_name[link.target])
            for link in topology.links
        ],
    )

    def elsewhere(placement):
        return Placement(domain_of_layer=tuple(new_place[d] for d in placement.domain_of_layer))

    moved_plan = dataclasses.replace(
        chosen,
        placement=elsewhere(chosen.placement),
        replicas=tuple(map(elsewhere, chosen.replicas)),
        parallelism=tuple(chosen.parallelism[old] for old in old_place if chosen.parallelism),
    )
    before, after = simulate(topology, workload, chosen), simulate(moved, workload, moved_plan)
    assert after.spans == before.spans
    assert after.makespan_s == before.makespan_s
    assert [move[1:] for move in after.transfers] == [move[1:] for move in before.transfers]


@settings(max_examples=FEW, deadline=None)
@given(case=parallel_cases(), found=corrections(), step=st.integers(0, 3))
def test_the_same_inputs_give_the_same_result(case, found, step):
    assert simulate(*case, found, step=step) == simulate(*case, found, step=step)


def test_empty_messages_cost_latencies_only():
    """Nothing to send, nothing to sum up: 0.5 s down and 0.25 s up; the inner ring has latency."""
    topology = Topology.of(
        [gpus("A", 2, (1.0, 0.125)), gpus("B", 2, (1.0, 0.125))],
        world("AB", {"AB": (1.0, 0.5), "BA": (1.0, 0.25)}).links,
    )
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 1)), parallelism=(Parallelism(tensor=2),) * 2
    )
    workload = with_parameters(unit_workload([(2, 2)] * 2, num_microbatches=1), 0.0)

    result = simulate(topology, workload, chosen)
    inner_s = 2 * 2 * 0.125
    assert result.makespan_s == 4 * (1 + inner_s) + 0.75
