"""Runs with and without shortcuts are the same: all times, the order of lines, the events."""

import pytest
from astra_hand_figures import ONE_BYTE_PER_NS
from astra_skewed_runs import KINDS, cases, event_by_event, outcome, rank_nodes, starts_us
from astra_traces import (
    ALL_REDUCE,
    Case,
    collective,
    compute,
    network_file,
    receive,
    send,
    system_file,
)
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_sim import RunOptions
from astra_sim.system.ring_lives import RingLife
from astra_sim.system.ring_turns import RingTurns


@settings(max_examples=examples(300))
@given(
    data=st.data(),
    backend=st.sampled_from(["unaware", "aware"]),
    num_queues=st.integers(1, 3),
    rendezvous=st.sampled_from([False, False, False, True]),
)
def test_any_run_is_the_same_without_shortcuts(data, backend, num_queues, rendezvous):
    """Collectives, algorithms, skews, sizes, LIFO and FIFO, groups, one dimension or two."""
    case = data.draw(cases(backend))
    options = RunOptions(
        num_queues_per_dimension=num_queues,
        rendezvous=rendezvous,
        multi_dimensional=len(case.network["npus_count"]) > 1,
    )

    assert outcome(case, backend, options) == outcome(event_by_event(case), backend, options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("backend", "topology"), [("unaware", "Switch"), ("aware", "Ring"), ("aware", "Switch")]
)
@pytest.mark.parametrize("latest_us", [0, 3, 40])
def test_most_steps_of_a_ring_apart_are_left_out(kind, backend, topology, latest_us, monkeypatch):
    """32 NPUs that start at different times need few of their steps one by one."""
    left_out = []
    whole = RingTurns._turn_events

    def counted(self, num_steps):
        left_out.append(num_steps)
        whole(self, num_steps)

    monkeypatch.setattr(RingTurns, "_turn_events", counted)
    ranks = [
        [compute(0, 1 + npu * 7 % 32 * latest_us // 31), collective(1, kind, 2**24, [0])]
        for npu in range(32)
    ]
    num_active = 2 if backend == "unaware" else 1  # two would queue for the same links
    system = system_file(preferred_dataset_splits=2, active_chunks_per_dimension=num_active)
    case = Case(ranks=ranks, network=network_file(topology, 32), system=system)

    once = outcome(case, backend)
    if backend == "aware" or latest_us:
        assert sum(left_out) > 12
    assert once == outcome(event_by_event(case), backend)


@settings(max_examples=examples(100))
@given(
    data=st.data(),
    where=st.sampled_from(
        [("unaware", "Switch"), *(("aware", name) for name in ("Ring", "FullyConnected", "Switch"))]
    ),
    starts=st.integers(3, 16).flatmap(starts_us),
)
def test_rings_apart_run_as_without_shortcuts(data, where, starts):
    """Two collectives after each other; members that are quick begin the second in the first."""
    kind, pause_us = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from([0, 5]))
    latency_ns = data.draw(st.sampled_from([0.0, 500.0, 40_000.0]))
    system = system_file(
        local_mem_bw=data.draw(st.sampled_from([0, 0.5, 50, 1600])),
        endpoint_delay=data.draw(st.sampled_from([1, 10, 1000])),
    )
    backend, topology = where
    ranks = [rank_nodes(start, [(kind, 2**18, None)] * 2, pause_us, []) for start in starts]
    network = network_file(topology, len(starts), ONE_BYTE_PER_NS, latency_ns)
    case = Case(ranks=ranks, network=network, system=system)

    assert outcome(case, backend) == outcome(event_by_event(case), backend)


@pytest.mark.parametrize(
    ("topology", "step_us", "order"), [("Ring", 1, 1), ("Ring", 100, 1), ("Switch", 100, 7)]
)
def test_most_events_of_members_that_wait_for_links_are_left_out(
    topology, step_us, order, monkeypatch
):
    """In the second round messages wait in turn, so that no state is that of the step before."""
    left_out = []
    whole = RingLife.leap

    def counted(times):
        before = times.queue.num_events
        is_known = whole(times)
        left_out.append(times.queue.num_events - before)
        return is_known

    monkeypatch.setattr(RingLife, "leap", counted)
    ranks = [
        [compute(0, 1 + step_us * (order * npu % 48)), collective(1, ALL_REDUCE, 2**30, [0])]
        for npu in range(48)
    ]
    system = system_file(preferred_dataset_splits=1, local_mem_bw=1600)
    case = Case(ranks=ranks, network=network_file(topology, 48, 50.0, 500.0), system=system)

    once = outcome(case, "aware")
    assert sum(left_out) > 0.3 * once[-1]
    assert once == outcome(event_by_event(case), "aware")


@settings(max_examples=examples(100))
@given(
    data=st.data(),
    topology=st.sampled_from(["Switch", "Switch", "Ring"]),
    latency_ns=st.sampled_from([0.0, 1.0, 500.0, 40_000.0]),
    starts=st.integers(3, 8).flatmap(starts_us),
)
def test_ways_of_two_links_that_others_cross_run_as_without_shortcuts(
    data, topology, latency_ns, starts
):
    """Every second NPU is in a ring; the others send to its members, over their last links."""
    kind, sizes = data.draw(st.sampled_from(KINDS)), st.sampled_from([1000, 2**15, 2**18, 2**20])
    steps = [(kind, data.draw(sizes), 1)] * data.draw(st.integers(1, 2))
    ranks = [[compute(0, 1)] for _ in range(2 * len(starts))]
    ranks[::2] = [rank_nodes(start, steps, 0, []) for start in starts]
    for npu in data.draw(st.sets(st.sampled_from(range(len(starts))), max_size=3)):
        target = 2 * data.draw(st.sampled_from(range(len(starts))))
        at_us, size = data.draw(st.integers(1, 3000)), data.draw(sizes)
        ranks[2 * npu + 1] = [compute(0, at_us), send(1, target, size, npu, [0])]
        ranks[target].append(receive(200 + npu, 2 * npu + 1, size, npu))
    system = system_file(
        local_mem_bw=data.draw(st.sampled_from([0, 0.5, 1600])),
        active_chunks_per_dimension=data.draw(st.integers(1, 2)),
        preferred_dataset_splits=data.draw(st.integers(1, 2)),
    )
    network = network_file(topology, len(ranks), ONE_BYTE_PER_NS, latency_ns)
    groups = {1: list(range(0, len(ranks), 2))}
    case = Case(ranks=ranks, network=network, system=system, groups=groups)

    assert outcome(case, "aware") == outcome(event_by_event(case), "aware")
