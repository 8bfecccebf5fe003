"""Memory over time: hand cases, the peaks that orders alone give, and what is left at the end."""

import dataclasses

import pandas as pd
import pytest
from examples import examples
from hypothesis import given, settings
from sharing import FEW, gpus, parallel_cases
from strategies import free_world, plan

from des import (
    Layer,
    Parallelism,
    Placement,
    Plan,
    Topology,
    Workload,
    domain_memory,
    lower,
    simulate,
)
from des.views.memory_timeline import MemoryChange, memory_timeline


def kept(num_layers: int, num_microbatches: int) -> Workload:
    """Layers of 10 parameters, 1 s a pass, 8 bytes a microbatch, 2 of them for the last pass."""
    layer = Layer(
        forward_flops=1.0,
        input_gradient_flops=1.0,
        weight_gradient_flops=1.0,
        num_parameters=10.0,
        activation_bytes=8.0,
        weight_input_bytes=2.0,
    )
    return Workload(
        name="kept",
        layers=(layer,) * num_layers,
        num_microbatches=num_microbatches,
        tokens_per_microbatch=1,
        message_bytes=0.0,
    )


def timeline(topology, workload, chosen):
    program = lower(topology, workload, chosen)
    return memory_timeline(program, simulate(topology, workload, chosen))


def steps(device):
    """When what is held changes, and to how much."""
    return [(change.time_s, change.activation_bytes) for change in device.changes]


def test_1f1b_on_two_domains_by_hand():
    """First: F0 0-1, F1 1-2, B0 4-6, B1 7-9. Second: F0 1-2, B0 2-4, F1 4-5, B1 5-7."""
    first, second = timeline(free_world(2), kept(2, 2), plan(0, 1)).devices

    assert steps(first) == [(0, 0), (0, 8), (1, 16), (6, 8), (9, 0)]
    assert steps(second) == [(0, 0), (1, 8), (4, 0), (4, 8), (7, 0)]
    assert (first.peak_activation_bytes, second.peak_activation_bytes) == (16, 8)
    state = (20, 20, 120)
    assert (first.weight_bytes, first.gradient_bytes, first.optimiser_bytes) == state
    assert first.model_state_bytes == 160
    assert first.peak_bytes == 176
    assert (first.domain, first.device, first.num_gpus) == ("A", 0, 1)


def test_the_input_gradient_frees_a_part_by_hand():
    """ZB-H1 on one domain: F0 0-1, D0 1-2, W0 2-3, and again."""
    (only,) = timeline(free_world(1), kept(1, 2), plan(0, schedule="zb_h1")).devices

    assert steps(only) == [(0, 0), (0, 8), (2, 2), (3, 0), (3, 8), (5, 2), (6, 0)]


def test_stages_of_one_device_share_its_memory_by_hand():
    """Pattern A, B, A: stage 0 holds its microbatch at 0-9, stage 2 at 2-5."""
    first, second = timeline(free_world(2), kept(3, 1), plan(0, 1, 0)).devices

    assert first.changes == (
        MemoryChange(0, 0, 0, 0),
        MemoryChange(0, 0, 8, 8),
        MemoryChange(2, 2, 8, 16),
        MemoryChange(5, 2, 0, 8),
        MemoryChange(9, 0, 0, 0),
    )
    assert steps(second) == [(0, 0), (1, 8), (7, 0)]
    assert (first.weight_bytes, second.weight_bytes) == (40, 20)


def test_gpus_of_a_device_share_by_hand():
    """Two devices of two replicas of two GPUs, one layer each: 8 bytes over four GPUs.

    Replicas hold a copy of their half of the layer: 5 parameters a GPU, of which each replica keeps
    the optimiser's state of half.
    """
    domain = dataclasses.replace(gpus("A", 8), gpu_memory_bytes=100.0)
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 0)),
        parallelism=(Parallelism(tensor=2, data=2, pipeline=2, sharding="optimiser"),),
    )

    found = timeline(Topology.of([domain], []), kept(2, 2), chosen)
    first, second = found.devices
    assert [change.activation_bytes for change in first.changes] == [0, 2, 4, 2, 0]
    assert [change.activation_bytes for change in second.changes] == [0, 2, 0, 2, 0]
    assert (first.device, second.device) == (0, 1)
    assert (first.num_gpus, first.capacity_bytes) == (4, 100.0)
    assert (first.weight_bytes, first.gradient_bytes, first.optimiser_bytes) == (10, 10, 30)
    assert first.peak_bytes == 54
    assert found.fullest is first


def test_the_fullest_device_is_the_one_with_least_room_left():
    """B needs less than A, but has less."""
    small = dataclasses.replace(gpus("B", 1), gpu_memory_bytes=170.0)
    topology = Topology.of([gpus("A", 1), small], free_world(2).links)

    found = timeline(topology, kept(3, 1), plan(0, 0, 1))
    assert [device.peak_bytes for device in found.devices] == [336, 168]
    assert found.fullest.domain == "B"


def test_the_table_has_a_row_for_every_change():
    found = timeline(free_world(2), kept(2, 2), plan(0, 1))
    frame = pd.DataFrame(found.columns())

    assert len(frame) == sum(len(device.changes) for device in found.devices) == 10
    assert list(frame.columns) == [
        "domain",
        "device",
        "stage",
        "time_s",
        "weight_bytes",
        "gradient_bytes",
        "optimiser_bytes",
        "stage_activation_bytes",
        "activation_bytes",
        "total_bytes",
        "capacity_bytes",
    ]
    assert frame["total_bytes"].max() == 176
    of_b = frame[frame["domain"] == "B"]
    assert list(of_b["time_s"]) == [0, 1, 4, 4, 7]
    assert set(of_b["stage"]) == {1}


# Laws for any plan.


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(single_visit=True))
def test_peaks_are_those_of_the_orders_where_each_device_has_one_worker(case):
    topology, workload, chosen = case
    found = timeline(topology, workload, chosen)

    for memory in domain_memory(topology, workload, chosen):
        peaks = [each.peak_bytes for each in found.devices if each.domain == memory.domain]
        num_gpus = topology.domains[topology.index_of[memory.domain]].num_gpus
        assert max(peaks, default=0.0) * num_gpus == pytest.approx(memory.required_bytes)


@pytest.mark.parametrize("schedule", ["interleaved_1f1b", "zb_auto", "greedy"])
def test_a_worker_of_several_stages_has_the_peak_of_its_order(schedule):
    topology, workload = free_world(2), kept(4, 4)
    chosen = plan(0, 1, 0, 1, schedule=schedule)

    found = timeline(topology, workload, chosen)
    needed = domain_memory(topology, workload, chosen)
    assert [each.peak_bytes for each in found.devices] == [each.required_bytes for each in needed]


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases())
def test_peaks_are_at_most_those_of_the_orders(case):
    """Several workers of one device need not be at their peaks at the same time."""
    topology, workload, chosen = case
    found = timeline(topology, workload, chosen)

    for memory in domain_memory(topology, workload, chosen):
        num_gpus = topology.domains[topology.index_of[memory.domain]].num_gpus
        for device in found.devices:
            if device.domain == memory.domain:
                assert device.peak_bytes * num_gpus <= memory.required_bytes * (1 + 1e-9)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases())
def test_memory_comes_and_goes_in_order_and_none_is_left(case):
    """Exactly none, and never less than none; stages add up to their device."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen)
    found = memory_timeline(lower(topology, workload, chosen), result)

    assert sum(len(device.changes) - 1 for device in found.devices) == len(result.spans)
    for device in found.devices:
        times_s = [change.time_s for change in device.changes]
        assert times_s == sorted(times_s)
        assert device.changes[0][2:] == device.changes[-1][2:] == (0.0, 0.0)
        held = {}
        for change in device.changes:
            held[change.stage] = change.stage_activation_bytes
            assert min(held.values()) >= 0.0
            assert change.activation_bytes == pytest.approx(sum(held.values()))
