"""The recurrence gives the times of the event simulation where every device has one worker."""

import dataclasses

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW, parallel_plans
from strategies import (
    STATIC_SCHEDULES,
    corrections,
    plan,
    topologies,
    unit_workload,
    workloads,
    world,
)

from des import NO_CORRECTIONS, DeadlockError, Operation, simulate
from des.costs.bound_stages import bound_stages
from des.costs.feasibility import assign
from des.costs.stage_times import pipeline_of
from des.schedules import Border, Pipeline, stage_orders, timing_of


def simulated(result, num_workers):
    """Operations and times of each stage, as they ran."""
    own = [[span for span in result.spans if span.stage == stage] for stage in range(num_workers)]
    operations = [
        tuple(Operation(span.kind, span.microbatch, span.stage) for span in spans) for spans in own
    ]
    times_s = [[(span.start_s, span.end_s) for span in spans] for spans in own]
    return operations, times_s


@st.composite
def chains(draw):
    """Domains that each come up once, joined by direct links, with room for any activations."""
    topology = draw(topologies(min_domains=1, fully=True))
    topology = dataclasses.replace(
        topology,
        domains=tuple(
            dataclasses.replace(domain, gpu_memory_bytes=1e15) for domain in topology.domains
        ),
    )
    workload = draw(workloads())
    plans = parallel_plans(topology, workload, single_visit=True, max_replicas=1)
    return topology, workload, draw(plans)


def pipeline_in(topology, workload, chosen, found):
    """The one pipeline of a plan as a schedule sees it."""
    stages, share = bound_stages(topology, chosen), workload.num_microbatches
    compression = chosen.activation_compression
    return pipeline_of(topology, workload, stages, found, share, compression=compression)


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=chains(), found=corrections())
def test_the_recurrence_is_the_simulation_on_a_chain_of_domains(case, found):
    """Devices of a domain in a row and messages that queue included."""
    topology, workload, chosen = case
    orders = assign(topology, workload, chosen, found).orders
    timing = timing_of(orders, pipeline_in(topology, workload, chosen, found))

    operations, times_s = simulated(simulate(topology, workload, chosen, found), len(orders))
    assert operations == list(orders)
    for starts, ends, pairs in zip(timing.start_s, timing.end_s, times_s, strict=True):
        assert list(starts) == pytest.approx([start for start, _ in pairs], rel=1e-9)
        assert list(ends) == pytest.approx([end for _, end in pairs], rel=1e-9)


@pytest.mark.parametrize("schedule", STATIC_SCHEDULES)
def test_the_recurrence_is_the_simulation_where_wires_are_the_bottleneck(schedule):
    """Slow wires of 3 s under passes of 1 s: every message waits for the one before. Exactly."""
    topology = world(
        "ABC", {"AB": (1.0, 0.5), "BC": (1.0, 8.0), "CB": (1.0, 0.25), "BA": (1.0, 4.0)}
    )
    workload = unit_workload([(1, 2)] * 3, num_microbatches=6, message_bytes=3.0)
    chosen = plan(0, 1, 2, schedule=schedule)
    orders = stage_orders(schedule, 3, 6)

    timing = timing_of(orders, pipeline_in(topology, workload, chosen, NO_CORRECTIONS))
    _, times_s = simulated(simulate(topology, workload, chosen), 3)
    found = [
        list(zip(*each, strict=True)) for each in zip(timing.start_s, timing.end_s, strict=True)
    ]
    assert found == times_s


@pytest.mark.parametrize("schedule", ["interleaved_1f1b", "greedy", "zb_auto"])
@settings(max_examples=examples(15), deadline=None)
@given(
    topology=topologies(min_domains=3, max_domains=3, fully=True),
    workload=workloads(num_layers=6),
    found=corrections(),
)
def test_the_recurrence_is_the_simulation_of_a_worker_with_several_stages(
    schedule, topology, workload, found
):
    """Messages of all stages of a device queue for the same link to the next."""
    domains = tuple(dataclasses.replace(one, gpu_memory_bytes=1e15) for one in topology.domains)
    topology = dataclasses.replace(topology, domains=domains)
    chosen = plan(0, 1, 2, 0, 1, 2, schedule=schedule)
    orders = assign(topology, workload, chosen, found).orders
    timing = timing_of(orders, pipeline_in(topology, workload, chosen, found))

    result = simulate(topology, workload, chosen, found)
    for worker, order_of_worker in enumerate(orders):
        own = [span for span in result.spans if span.stage % 3 == order_of_worker[0].stage % 3]
        assert [Operation(span.kind, span.microbatch, span.stage) for span in own] == list(
            order_of_worker
        )
        assert timing.start_s[worker] == pytest.approx([span.start_s for span in own], rel=1e-9)
        assert timing.end_s[worker] == pytest.approx([span.end_s for span in own], rel=1e-9)


def two_stages(**borders: Border) -> Pipeline:
    """Forward 1 s, backward 2 s, two microbatches on two devices."""
    free = {"down": Border(), "up": Border()}
    return dataclasses.replace(
        Pipeline.uniform(2, 2), **{name: (one,) for name, one in (free | borders).items()}
    )


def test_messages_queue_and_fly_by_hand():
    """0.5 s on the wire and 0.25 s of flight down, 2 s and 0.5 s up, gpipe.

    Stage 0: F0 0-1, F1 1-2, there at 1.75 and 2.75. Stage 1: F0 1.75-2.75, F1 -3.75, B0 -5.75,
    B1 -7.75. B0 leaves 5.75-7.75, there at 8.25; B1 leaves 7.75-9.75, there at 10.25.
    """
    pipeline = two_stages(
        down=Border(transfer_s=0.5, latency_s=0.25), up=Border(transfer_s=2.0, latency_s=0.5)
    )
    timing = timing_of(stage_orders("gpipe", 2, 2), pipeline)

    assert timing.start_s == ((0, 1, 8.25, 10.25), (1.75, 2.75, 3.75, 5.75))
    assert timing.end_s == ((1, 2, 10.25, 12.25), (2.75, 3.75, 5.75, 7.75))
    assert timing.makespan_s == 12.25
    assert timing.longest_worker_s == 12.25


def test_the_longest_worker_is_less_than_the_makespan_where_another_ends_last_by_hand():
    """ZB-H2 of two stages, all passes 1 s.

    Stage 0: F0 F1 F2 D0 W0 D1 W1 D2 W2 without a break. Stage 1 starts 1 s later and is as busy.
    """
    timing = timing_of(stage_orders("zb_h2", 2, 3), Pipeline.uniform(2, 3))

    assert timing.start_s == (tuple(range(9)), tuple(range(1, 10)))
    assert timing.makespan_s == 10
    assert timing.longest_worker_s == 9


def test_stages_of_one_device_pass_outputs_on_at_once():
    """Stages 0 and 1 on device 0, 2 on device 1; only the border between the devices takes time."""
    border = Border(transfer_s=1.0, latency_s=1.0)
    pipeline = dataclasses.replace(
        Pipeline.uniform(3, 1, border=border),
        device_of_stage=(0, 0, 1),
        memory_bytes=(1.0, 1.0),
    )
    first = (*(Operation("F", 0, stage) for stage in (0, 1)), Operation("B", 0, 1))
    orders = [
        (*first, Operation("B", 0, 0)),
        (Operation("F", 0, 2), Operation("B", 0, 2)),
    ]

    timing = timing_of(orders, pipeline)
    assert timing.start_s == ((0, 1, 9, 11), (4, 5))
    assert timing.end_s == ((1, 2, 11, 13), (5, 7))


def test_orders_that_wait_for_each_other_have_no_times():
    one = [Operation(kind, int(number), 0) for kind, number in ("F0", "B0", "F1", "B1")]
    other = [Operation(kind, int(number), 1) for kind, number in ("F0", "F1", "B0", "B1")]

    with pytest.raises(DeadlockError, match="deadlock, waiting for their inputs: B0 of stage 0"):
        timing_of([tuple(one), tuple(other)], two_stages())
