"""Sharing layers among the GPUs of a domain, against hand-computed cases and closed forms."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import gpus, simulate_alone, with_parameters
from strategies import (
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
from des.compiled.simulate import simulate_compiled
from des.costs.collectives import ring_all_reduce_s
from des.costs.stage_times import compute_rate_flops_per_s


def times(result, stage):
    """Start and end of each pass of a stage, by names such as ``"F0"``."""
    return {
        f"{span.kind}{span.microbatch}": (span.start_s, span.end_s)
        for span in result.spans
        if span.stage == stage
    }


# One device of several GPUs.


def test_data_parallelism_by_hand():
    """Four GPUs at 1 s and 2 s of work: 2 x 3/4 s, then the sum of gradients.

    5 parameters are 10 bytes: twice 3 steps of 0.25 s + 2.5 bytes at 10 bytes/s.
    """
    workload = with_parameters(unit_workload([(1, 2)], num_microbatches=2), 5.0)

    result = simulate_alone(gpus("A", 4, (10.0, 0.25)), workload, data=4)
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

    result = simulate_alone(gpus("A", data, inner), workload, data=data)
    ring_s = ring_all_reduce_s(2 * 2 * num_parameters, data, *inner)
    assert result.makespan_s == pytest.approx(num_microbatches * 10 / data + ring_s)


def test_tensor_parallelism_by_hand():
    """Two layers of 1 s forward, 1 s + 1 s backward, on two GPUs.

    A message is 8 bytes, of which a ring of two sends 4 twice: 2 (0.5 + 4 / 8) = 2 s. Twice a
    layer: 2 x (0.5 + 4) s of F, as much of D, 2 x 0.5 s of W.
    """
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1, message_bytes=8.0)
    domain = gpus("A", 2, (8.0, 0.5))

    whole = simulate_alone(domain, workload, tensor=2)
    assert times(whole, 0) == {"F0": (0, 9), "B0": (9, 19)}
    assert whole.makespan_s == 19
    halves = simulate_alone(domain, workload, schedule="zb_h1", tensor=2)
    assert times(halves, 0) == {"F0": (0, 9), "D0": (9, 18), "W0": (18, 19)}


def test_replicas_of_a_device_sum_up_their_share_of_the_tensor():
    """Two replicas of two GPUs hold half a message each: 2 (0.5 + 2 / 8) = 1.5 s twice a layer."""
    workload = unit_workload([(1, 2)], num_microbatches=1, message_bytes=8.0)

    result = simulate_alone(
        gpus("A", 4, (8.0, 0.5)), with_parameters(workload, 0.0), tensor=2, data=2
    )
    assert times(result, 0) == {"F0": (0, 0.25 + 3.0), "B0": (3.25, 3.25 + 0.5 + 3.0)}


@given(
    tensor=st.integers(1, 8),
    passes_s=st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=1, max_size=4),
)
def test_tensor_parallelism_on_free_inner_links_is_one_faster_device(tensor, passes_s):
    """The device that a plan without a parallelism makes of the whole domain."""
    workload = unit_workload(passes_s, num_microbatches=3, message_bytes=8.0)
    domain = gpus("A", tensor)

    shared = simulate_alone(domain, workload, tensor=tensor)
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

    result = simulate_alone(
        gpus("A", num_devices), workload, schedule=schedule, pipeline=num_devices
    )
    each_s = 60 / num_devices * 3
    assert result.makespan_s == (num_microbatches + num_devices - 1) * each_s
    assert [stage.device for stage in result.stages] == list(range(num_devices))
    assert {stage.domain for stage in result.stages} == {"A"}


@pytest.mark.parametrize("simulator", [simulate, simulate_compiled])
@pytest.mark.parametrize(
    ("sharing", "back", "there"),
    [
        ("fifo", [(10.5, 12.5), (12.5, 14.5)], [5.25, 6.25, 8.25]),
        ("none", [(9.5, 11.5), (11.5, 13.5)], [4.25, 5.25, 7.25]),
    ],
)
def test_messages_queue_for_the_wires_of_a_domain_by_hand(simulator, sharing, back, there):
    """Two devices, forward 1 s, backward 2 s; 8 bytes take 2 s and then 0.25 s, each way its own.

    Device 0: F0 0-1, F1 1-2. F0 leaves 1-3, there at 3.25; F1 leaves 3-5, there at 5.25.
    Device 1: F0 3.25-4.25, F1 5.25-6.25, B0 6.25-8.25, B1 8.25-10.25.
    B0 leaves 8.25-10.25, there at 10.5; B1 leaves 10.25-12.25, there at 12.5.
    Device 0: B0 10.5-12.5, B1 12.5-14.5.

    Without queues F1 leaves at 2-4 s and is there at 4.25, where F0 ends. Device 1: F0 3.25-4.25,
    F1 4.25-5.25, B0 5.25-7.25, B1 7.25-9.25. B1 is back at 11.5.
    """
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2, message_bytes=8.0)
    domain, rules = gpus("A", 2, (4.0, 0.25)), {"sharing": sharing, "simulator": simulator}
    begin_s, first_s, second_s = there

    result = simulate_alone(domain, workload, schedule="gpipe", pipeline=2, **rules)
    assert times(result, 0) == {"F0": (0, 1), "F1": (1, 2), "B0": back[0], "B1": back[1]}
    assert times(result, 1) == {
        "F0": (3.25, 4.25),
        "F1": (begin_s, first_s),
        "B0": (first_s, second_s),
        "B1": (second_s, second_s + 2.0),
    }
    assert result.transfers == ()


def test_replicas_of_neighbouring_devices_send_their_shares_side_by_side():
    """Two replicas a device halve passes and messages: 8 bytes take 1 s."""
    workload = unit_workload([(2, 4)] * 2, num_microbatches=1, message_bytes=8.0)

    result = simulate_alone(
        gpus("A", 4, (4.0, 0.25)), with_parameters(workload, 0.0), data=2, pipeline=2
    )
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
