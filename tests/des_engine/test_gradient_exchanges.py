"""Exchanges of replicas behind the next steps, and at due steps only."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import FREE, equal_world, gpus, model, replicas, sums
from strategies import unit_workload, world

from des import (
    EVERY_STEP,
    DiLoCo,
    GradientExchange,
    Parallelism,
    StreamingDiLoCo,
    Topology,
    simulate,
)
from des.costs.collectives import all_gather_s, ring_all_reduce_s
from des.simulation.iteration import exchange_behind_s


def test_diloco_exchanges_at_due_steps_only():
    """Every third step costs what every step would, the others what computing does."""
    topology, workload = equal_world(2, link=(5.0, 0.5)), model(2, 4, 10.0)
    chosen = replicas([0, 0], [1, 1], synchronisation=DiLoCo(steps_between=3, outer_state="cpu"))

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
