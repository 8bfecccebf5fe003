"""Several chunks a device on a domain's own pipeline: interleaved and zero-bubble schedules."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW, FREE, equal_world, gpus
from strategies import unit_workload

from des import Nodes, Parallelism, Placement, Plan, Topology, domain_memory, simulate
from des.compiled.simulate import simulate_compiled
from des.schedules.interleaved import loop_devices, wave_devices

INNER_SCHEDULES = ("interleaved_1f1b", "1f1b", "zb_h1", "zb_h2", "zb_auto_1x", "greedy_2x")


def inner(schedule: str, text: str, num_layers: int) -> Plan:
    """All layers in domain 0, whose GPUs share them."""
    return Plan(
        placement=Placement(domain_of_layer=(0,) * num_layers),
        schedule=schedule,
        parallelism=(Parallelism.parse(text),),
    )


def one_domain(num_gpus: int, wire: tuple[float, float] = FREE) -> Topology:
    """A single domain of GPUs of 1 FLOP/s."""
    return Topology.of([gpus("A", num_gpus, wire)], [])


@settings(max_examples=examples(FEW), deadline=None)
@given(
    num_devices=st.integers(2, 5),
    num_chunks=st.integers(2, 4),
    num_groups=st.integers(1, 4),
    forward_s=st.integers(1, 3),
    backward_s=st.sampled_from([2, 4]),
)
def test_the_bubble_of_equal_chunks_is_that_of_the_closed_form(
    num_devices, num_chunks, num_groups, forward_s, backward_s
):
    """(p - 1) / (V m) of the work of a device, on wires that take no time."""
    count, m = num_devices * num_chunks, num_devices * num_groups
    workload = unit_workload([(forward_s, backward_s)] * count, num_microbatches=m)
    plan = inner("interleaved_1f1b", f"1x1x{num_devices}v{num_chunks}", count)
    result = simulate(one_domain(num_devices), workload, plan)

    ideal_s = m * num_chunks * (forward_s + backward_s)
    assert result.makespan_s == pytest.approx(ideal_s * (1 + (num_devices - 1) / (num_chunks * m)))
    assert sum(stage.busy_s for stage in result.stages) == num_devices * ideal_s


@settings(max_examples=examples(FEW), deadline=None)
@given(
    shape=st.tuples(st.integers(2, 4), st.integers(1, 3)),
    is_wave=st.booleans(),
    num_microbatches=st.integers(1, 6),
    wire=st.tuples(st.integers(1, 8), st.integers(0, 3)),
    schedule=st.sampled_from(INNER_SCHEDULES),
)
def test_devices_of_a_domain_are_domains_of_one_gpu(
    shape, is_wave, num_microbatches, wire, schedule
):
    """The same times as domains joined by wires like the inner ones, and the same by the twin."""
    num_devices, num_chunks = shape
    if schedule == "interleaved_1f1b" and (num_chunks == 1 or is_wave):
        num_chunks, is_wave = max(2, num_chunks), False
    count = num_devices * num_chunks
    workload = unit_workload(
        [(1 + stage % 2, 2) for stage in range(count)],
        num_microbatches=num_microbatches,
        message_bytes=2.0,
    )
    text = f"1x1x{num_devices}{'w' if is_wave else 'v'}{num_chunks}"
    topology, plan = one_domain(num_devices, wire), inner(schedule, text, count)
    devices = (wave_devices if is_wave else loop_devices)(num_devices, num_chunks)
    apart = equal_world(num_devices, link=wire)
    found = simulate(topology, workload, plan)
    expected = simulate(
        apart, workload, Plan(placement=Placement(domain_of_layer=devices), schedule=schedule)
    )

    spans = {(span.stage, span.kind, span.microbatch): span.start_s for span in found.spans}
    if not is_wave or num_chunks == 1:  # a turn would join two chunks to one stage of a domain
        assert found.makespan_s == expected.makespan_s
        assert spans == {
            (span.stage, span.kind, span.microbatch): span.start_s for span in expected.spans
        }
    assert simulate_compiled(topology, workload, plan) == found


def test_interleaving_keeps_more_activations_by_hand():
    """Devices 0 and 1 warm up with 2 + 2 and 2 chunks, and one more before the first backward.

    Each GPU counts as the fuller one: 5 chunks of 1 byte on 2 GPUs; 1F1B has 2 microbatches of 2.
    """
    workload = unit_workload([(1, 2)] * 4, num_microbatches=4)
    held = [
        domain_memory(one_domain(2), workload, inner(schedule, text, 4))[0].activation_bytes
        for schedule, text in (("interleaved_1f1b", "1x1x2v2"), ("1f1b", "1x1x2"))
    ]

    assert held == [10.0, 8.0]


def test_a_wave_there_and_back_is_zb_v():
    """No idle time but the fill, in the activations of 1F1B: ((p - 1) F of half a device)."""
    num_devices, m = 3, 8
    workload = unit_workload([(1, 2)] * 6, num_microbatches=m)
    topology = one_domain(num_devices)
    waves, plain = inner("zb_auto_1x", "1x1x3w2", 6), inner("1f1b", "1x1x3", 6)
    wave, flat = (simulate(topology, workload, plan).makespan_s for plan in (waves, plain))

    ideal_s = 2 * 3 * m
    assert flat == ideal_s + (num_devices - 1) * 6
    assert ideal_s <= wave <= ideal_s + num_devices
    held = [domain_memory(topology, workload, plan)[0].activation_bytes for plan in (waves, plain)]
    assert held[0] <= held[1]


def test_the_way_back_to_the_first_device_crosses_nodes_by_hand():
    """Devices 0, 1 | 2, 3: only the ways 1-2 and 3-0 leave a node, for 10 s a message."""
    domain = replace(
        gpus("A", 4),
        nodes=Nodes(
            gpus_per_node=2,
            nics_per_node=2,
            nic_bandwidth_bytes_per_s=0.1,
            nic_latency_s=0.0,
            tensor_across_nodes=False,
        ),
    )
    topology = Topology.of([domain], [])
    workload = unit_workload([(1, 2)] * 8, num_microbatches=1, message_bytes=1.0)
    plan = inner("interleaved_1f1b", "1x1x4v2", 8)
    result = simulate(topology, workload, plan)

    starts_s = {span.stage: span.start_s for span in result.spans if span.kind == "F"}
    assert [starts_s[stage] for stage in range(8)] == [0, 1, 12, 13, 24, 25, 36, 37]
    assert result == simulate_compiled(topology, workload, plan)


def test_a_domain_with_one_chunk_a_device_has_no_interleaving():
    workload = unit_workload([(1, 2)] * 4, num_microbatches=2)
    with pytest.raises(ValueError, match=r"needs several stages a device, got one; .* 8x1x4v3"):
        simulate(one_domain(2), workload, inner("interleaved_1f1b", "1x1x2", 4))
