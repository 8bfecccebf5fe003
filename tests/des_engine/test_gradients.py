"""Sums of gradients over replicas against hand-computed cases and closed forms."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import (
    FREE,
    equal_world,
    gpus,
    model,
    replicas,
    sums,
)
from strategies import unit_workload, world

from des import (
    EVERY_STEP,
    DiLoCo,
    GradientExchange,
    Parallelism,
    StreamingDiLoCo,
    Topology,
    Transfer,
    simulate,
)
from des.costs.collectives import all_gather_s, hierarchical_all_reduce_s, ring_all_reduce_s
from des.engine.gradients import exchange_behind_s

AT_THE_END = GradientExchange(overlapped=False)


# Hand cases.


def test_two_replicas_by_hand():
    """3 s of work each, then 20 bytes in two steps of 10 bytes: 2 s and 0.5 s of flight, twice."""
    result = simulate(equal_world(2, link=(5.0, 0.5)), model(1, 2, 10.0), replicas([0], [1]))

    assert sums(result) == [
        Transfer(0, 0, "G", 0, 3, 5, 5.5),
        Transfer(0, 0, "G", 0, 5.5, 7.5, 8),
        Transfer(1, 1, "G", 0, 3, 5, 5.5),
        Transfer(1, 1, "G", 0, 5.5, 7.5, 8),
    ]
    assert result.makespan_s == 8
    assert result.exposed_exchange_s == 5
    assert [stage.idle_s for stage in result.stages] == [5, 5]


@pytest.mark.parametrize(
    ("overlapped", "wire_s", "makespan_s"),
    [
        (True, [(4, 5), (5.5, 6.5), (6.5, 7.5), (8, 9)], 9.5),
        (False, [(6, 7), (7, 8), (8, 9), (9, 10)], 10.5),
    ],
)
def test_buckets_leave_as_the_last_backward_pass_makes_them_by_hand(overlapped, wire_s, makespan_s):
    """Two layers, F 0-2, B 2-6: layer 1 is ready at 4, layer 0 at 6. A step takes 1 s + 0.5 s.

    Overlapped: layer 1 leaves at 4 and 5.5; layer 0 waits for the wire from 6 to 6.5 and leaves
    again at 8. At the end: layer 1 at 6, layer 0 at 7, then each again behind the other.
    """
    exchange = GradientExchange(overlapped=overlapped, bucket_bytes=20.0)
    chosen = replicas([0, 0], [1, 1], exchange=exchange)

    result = simulate(equal_world(2, link=(10.0, 0.5)), model(2, 2, 10.0), chosen)
    for link in range(2):
        assert [move[4:6] for move in sums(result) if move.link == link] == wire_s
    assert result.makespan_s == makespan_s


def test_without_overlap_a_stage_waits_for_its_pipeline_by_hand():
    """Stages of 1 s + 2 s on free links: stage 1 is done at 4, stage 0 at 6."""

    def ready_s(exchange):
        chosen = replicas([0, 1], [2, 3], exchange=exchange)
        result = simulate(equal_world(4), model(2, 2, 10.0), chosen)
        return [min(move.start_s for move in sums(result) if move.stage == s) for s in range(4)]

    assert ready_s(GradientExchange()) == [6, 4, 6, 4]
    assert ready_s(AT_THE_END) == [6, 6, 6, 6]


def test_a_replica_with_fewer_microbatches_waits_by_hand():
    """Three microbatches: 6 s here, 3 s there.

    What comes from there has long arrived when the sum starts here: both steps leave one behind
    the other. There the second step waits for the first from here, until 7.5.
    """
    result = simulate(equal_world(2, link=(10.0, 0.5)), model(1, 3, 10.0), replicas([0], [1]))

    assert [move[4:] for move in sums(result) if move.stage == 0] == [(6, 7, 7.5), (7, 8, 8.5)]
    assert [move[4:] for move in sums(result) if move.stage == 1] == [(3, 4, 4.5), (7.5, 8.5, 9)]
    assert result.makespan_s == 9


def test_sums_wait_for_the_halves_that_make_them():
    """ZB-H1 ends with a weight gradient: F 0-1, D 1-2, W 2-3."""
    result = simulate(equal_world(2), model(1, 2, 10.0), replicas([0], [1], schedule="zb_h1"))

    assert {move.start_s for move in sums(result)} == {3}


def test_empty_sums_cost_the_latency_of_every_step():
    result = simulate(equal_world(3, link=(1.0, 0.25)), model(1, 3, 0.0), replicas([0], [1], [2]))

    assert result.makespan_s == 3 + 4 * 0.25


# Closed forms.


@given(
    num_replicas=st.integers(2, 5),
    data=st.integers(1, 4),
    inner=st.tuples(st.floats(1.0, 1e3), st.floats(0.0, 1.0)),
    outer=st.tuples(st.floats(1.0, 1e3), st.floats(0.0, 1.0)),
    num_parameters=st.floats(0.0, 1e3),
)
def test_one_bucket_is_a_hierarchical_all_reduce(num_replicas, data, inner, outer, num_parameters):
    """With a single rank a domain that is 2 (R - 1) (latency + n / (R B))."""
    topology = equal_world(num_replicas, link=outer, inner=inner, num_gpus=data)
    chosen = replicas(
        *([domain, domain] for domain in range(num_replicas)),
        parallelism=(Parallelism(data=data),) * num_replicas,
    )

    result = simulate(topology, model(2, num_replicas, num_parameters), chosen)
    payload_bytes = 2 * 2 * num_parameters
    expected = hierarchical_all_reduce_s(
        payload_bytes,
        num_domains=num_replicas,
        ranks_per_domain=data,
        inner_bandwidth_bytes_per_s=inner[0],
        inner_latency_s=inner[1],
        outer_bandwidth_bytes_per_s=outer[0],
        outer_latency_s=outer[1],
    )
    assert result.makespan_s == pytest.approx(6 / data + expected)
    if data == 1:
        steps = 2 * (num_replicas - 1)
        step_s = outer[1] + payload_bytes / (num_replicas * outer[0])
        assert expected == pytest.approx(steps * step_s)


def test_gpus_that_share_a_layer_sum_up_their_part_inside_by_hand():
    """Two replicas of two GPUs in each of two domains; 40 bytes, 20 on each GPU.

    Inside one step of 10 bytes, 0.5 s, before and after; outside two steps of 20 bytes, 2 s each.
    """
    topology = equal_world(2, link=(10.0, 0.0), inner=(20.0, 0.0), num_gpus=4)
    chosen = replicas([0], [1], parallelism=(Parallelism(tensor=2, data=2),) * 2)

    result = simulate(topology, model(1, 2, 20.0), chosen)
    assert result.makespan_s == 3 / 4 + 0.5 + 2 * 2 + 0.5


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(num_stages=st.integers(1, 4), share=st.integers(1, 4))
def test_two_replicas_on_free_links_take_the_time_of_half_the_microbatches(
    schedule, num_stages, share
):
    """(m / 2 + p - 1)(f + b): half the time where there is one stage."""
    chosen = replicas(range(num_stages), range(num_stages, 2 * num_stages), schedule=schedule)

    result = simulate(equal_world(2 * num_stages), model(num_stages, 2 * share, 1.0), chosen)
    assert result.makespan_s == 3 * (share + num_stages - 1)
    halves = result.spans[: len(result.spans) // 2], result.spans[len(result.spans) // 2 :]
    assert len(halves[0]) == len(halves[1]) == 2 * num_stages * share


@pytest.mark.parametrize("schedule", ["greedy", "zb_auto", "deep_1f1b"])
def test_every_replica_has_a_schedule_for_its_own_pipeline(schedule):
    """The second one has slower links, and one microbatch less."""
    topology = equal_world(4, link=(2.0, 0.5))
    slow = [
        dataclasses.replace(link, latency_s=3.0)
        if {link.source, link.target} == {"C", "D"}
        else link
        for link in topology.links
    ]
    topology = dataclasses.replace(topology, links=tuple(slow))
    workload = dataclasses.replace(model(2, 7, 0.0), message_bytes=1.0)

    both = simulate(topology, workload, replicas([0, 1], [2, 3], schedule=schedule))
    for replica, domains in enumerate(([0, 1], [2, 3])):
        share = dataclasses.replace(workload, num_microbatches=4 - replica)
        alone = simulate(topology, share, replicas(domains, schedule=schedule))
        own = [span for span in both.spans if span.stage // 2 == replica]
        assert [(span.stage % 2, *span[1:]) for span in own] == list(alone.spans)


def test_equal_replicas_do_the_same_at_the_same_time():
    """Whichever of them comes first in the ring."""
    topology = equal_world(6, link=(10.0, 0.5), inner=(20.0, 0.25), num_gpus=2)
    chosen = replicas([0, 1], [2, 3], [4, 5], parallelism=(Parallelism(data=2),) * 6)

    result = simulate(topology, model(2, 6, 10.0), chosen)
    stages = [[span[1:] for span in result.spans if span.stage == stage] for stage in range(6)]
    assert stages == stages[:2] * 3
    moves = [[move[2:] for move in sums(result) if move.stage == stage] for stage in range(6)]
    assert moves == moves[:2] * 3


# When an exchange is due.


def test_diloco_exchanges_at_due_steps_only():
    """Every third step costs what every step would, the others what computing does."""
    topology, workload = equal_world(2, link=(5.0, 0.5)), model(2, 4, 10.0)
    chosen = replicas([0, 0], [1, 1], synchronisation=DiLoCo(steps_between=3))

    found = [simulate(topology, workload, chosen, step=step) for step in range(6)]
    assert [bool(sums(result)) for result in found] == [False, False, True] * 2
    assert [result.makespan_s for result in found[:2]] == [12, 12]
    every = dataclasses.replace(chosen, synchronisation=EVERY_STEP)
    assert found[2] == found[5] == simulate(topology, workload, every)


def test_fewer_bits_are_fewer_bytes():
    """4 bits instead of 16: 5 bytes of the 20, in steps of 2.5."""
    chosen = replicas([0], [1], synchronisation=DiLoCo(steps_between=1, bits_per_value=4.0))

    result = simulate(equal_world(2, link=(5.0, 0.0)), model(1, 2, 10.0), chosen)
    assert result.makespan_s == 3 + 2 * 0.5
    assert [link.num_bytes for link in result.links] == [5.0, 5.0]


STREAMING = StreamingDiLoCo(steps_between=2, layers_per_fragment=2, overlap_steps=1)


def test_an_exchange_behind_the_next_steps_has_a_time_of_its_own_by_hand():
    """Four layers in fragments (0, 2) and (1, 3), due after steps 0 and 1; a layer is 20 bytes.

    Two buckets of two steps of 10 bytes on one wire each way: 2 s and 0.5 s of flight. Layer 2
    leaves at 0-2, layer 0 at 2-4, then again at 4-6 and 6-8; there at 8.5.
    """
    topology, workload = equal_world(2, link=(5.0, 0.5)), model(4, 2, 10.0)
    chosen = replicas([0] * 4, [1] * 4, synchronisation=STREAMING)

    for step in range(4):
        assert sums(simulate(topology, workload, chosen, step=step)) == []
        assert exchange_behind_s(topology, workload, chosen, step) == 8.5


@pytest.mark.parametrize(
    "chosen",
    [
        replicas([0] * 4, synchronisation=STREAMING),
        replicas([0] * 4, [1] * 4),
        replicas([0] * 4, [1] * 4, synchronisation=dataclasses.replace(STREAMING, steps_between=4)),
    ],
    ids=["one replica", "nothing behind", "not due"],
)
def test_nothing_behind_takes_no_time(chosen):
    assert exchange_behind_s(equal_world(2, link=(5.0, 0.5)), model(4, 2, 10.0), chosen, 0) == 0.0


@given(num_replicas=st.integers(2, 4), data=st.integers(1, 3))
def test_one_fragment_behind_is_a_ring_and_an_all_gather(num_replicas, data):
    """The GPUs of a device have summed up after the step; what comes back is passed on."""
    topology = equal_world(num_replicas, link=(7.0, 0.5), inner=(30.0, 0.125), num_gpus=data)
    chosen = replicas(
        *([domain] * 2 for domain in range(num_replicas)),
        parallelism=(Parallelism(data=data),) * num_replicas,
        synchronisation=StreamingDiLoCo(steps_between=1, layers_per_fragment=2),
    )

    found_s = exchange_behind_s(topology, model(2, num_replicas, 10.0), chosen, 0)
    inside_s = all_gather_s(40.0, data, 30.0, 0.125)
    assert found_s == pytest.approx(ring_all_reduce_s(40.0, num_replicas, 7.0, 0.5) + inside_s)


def test_changes_of_parameters_are_known_after_the_own_sum_of_gradients():
    """DiLoCo's exchange adds a ring and an all-gather to what every step does."""
    topology = equal_world(2, link=(7.0, 0.5), inner=(30.0, 0.125), num_gpus=2)
    chosen = replicas(
        [0, 0],
        [1, 1],
        parallelism=(Parallelism(data=2),) * 2,
        synchronisation=DiLoCo(steps_between=2),
    )
    ordinary, due = (
        simulate(topology, model(2, 2, 10.0), chosen, step=step).exposed_exchange_s
        for step in (0, 1)
    )

    assert ordinary == pytest.approx(ring_all_reduce_s(40.0, 2, 30.0, 0.125))
    outer_s = ring_all_reduce_s(40.0, 2, 7.0, 0.5) + all_gather_s(40.0, 2, 30.0, 0.125)
    assert due == pytest.approx(ordinary + outer_s)


def test_overlap_can_hurt_where_sums_share_a_link_by_hand():
    """Stages on A and B, the other replica on C, which B reaches over A only.

    A's backward pass ends at 13.5, B's at 12, 0.5 s away. Sums take 2 x 8 s for A and 2 x 2 s for B
    on the link from A to C, and 8 s and 2 s inside C. Overlapped, that of B has the link at
    12.5-16.5, that of A at 16.5-32.5 and C then until 40.5. At the end, that of A has the link at
    13.5-29.5 and C until 37.5, that of B the link at 29.5-33.5 and C at 37.5-39.5.
    """
    links = {"AB": FREE, "BA": (1e300, 0.5), "AC": (1.0, 0.0), "CA": FREE}
    fast = dataclasses.replace(gpus("C", 2, (1.0, 0.0)), gpu_peak_flops_per_s=512.0)
    topology = Topology.of([gpus("A", 1), gpus("B", 1), fast], world("ABC", links).links)
    work = unit_workload([(10, 1), (1, 1)], num_microbatches=2)
    layers = tuple(
        dataclasses.replace(layer, num_parameters=size)
        for layer, size in zip(work.layers, (8.0, 2.0), strict=True)
    )
    early_s, late_s = (
        simulate(
            topology,
            dataclasses.replace(work, layers=layers),
            replicas(
                [0, 1],
                [2, 2],
                exchange=GradientExchange(overlapped=overlapped),
                parallelism=(Parallelism(), Parallelism(), Parallelism(data=2)),
            ),
        ).makespan_s
        for overlapped in (True, False)
    )
    assert (early_s, late_s) == (40.5, 39.5)
