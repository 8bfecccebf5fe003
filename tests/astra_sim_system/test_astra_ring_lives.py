"""Rings of which some members have not started yet, or have ended: runs are as event by event."""

import pytest
from astra_hand_figures import ONE_BYTE_PER_NS
from astra_skewed_runs import KINDS, event_by_event, outcome, rank_nodes, starts_us
from astra_traces import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
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

from astra_sim.system.ring_lives import RingLife

FORMS = {
    "in turn": [1 + 100 * npu for npu in range(32)],
    "in reverse": [1 + 10 * (31 - npu) for npu in range(32)],
    "without order": [1 + npu * 19 % 32 * 313 for npu in range(32)],
    "one late": [1 + 5000 * (npu == 12) for npu in range(32)],
    "one early": [5001 - 5000 * (npu == 12) for npu in range(32)],
}
PLACES = [("unaware", "Switch"), ("aware", "Ring"), ("aware", "Switch")]

Tied = tuple[int, list[int], int, float, int, dict[str, int]]
"""Kind, starts, bytes of a message, latency, collectives in turn, and settings."""

TIED: dict[str, tuple[str, str, Tied]] = {
    "messages that pass those that have come": (
        *("unaware", "Ring"),
        (ALL_GATHER, [11, 9, 7, 5, 3, 1], 1000, 3000.0, 1, {"endpoint_delay": 1}),
    ),
    "messages for which a link is free as they come": (
        *("aware", "Switch"),
        (ALL_TO_ALL, [13, 15, 13, 3, 29, 9, 5, 19], 3000, 3000.0, 1, {"endpoint_delay": 1000}),
    ),
    "messages that were under way as the last began": (
        *("aware", "FullyConnected"),
        (
            *(ALL_GATHER, [1, 1, 2, 1, 1, 3], 3000, 500.0, 1),
            {"endpoint_delay": 1000, "active_chunks_per_dimension": 2},
        ),
    ),
    "a ring after another": (
        *("unaware", "Ring"),
        (
            *(ALL_REDUCE, [1, 1, 1, 1, 10], 3500, 500.0, 2),
            {"endpoint_delay": 500, "preferred_dataset_splits": 3},
        ),
    ),
}


@st.composite
def systems(draw: st.DrawFn) -> dict[str, object]:
    """Chunks, and times of local moves and reductions."""
    return system_file(
        preferred_dataset_splits=draw(st.sampled_from([1, 1, 2, 3])),
        active_chunks_per_dimension=draw(st.integers(1, 2)),
        local_mem_bw=draw(st.sampled_from([0, 0.5, 50, 1600])),
        endpoint_delay=draw(st.sampled_from([0, 1, 10, 1000])),
    )


@st.composite
def rings(draw: st.DrawFn, topology: str) -> Case:
    """One ring alone, of all NPUs or of every second, with little else.

    That may be computations of members that have not started, or of others, work after the ring,
    also a second collective at once or later, and messages over the ring's links.
    """
    starts, spread = draw(st.integers(3, 9).flatmap(starts_us)), draw(st.sampled_from([1, 1, 2]))
    kind, size = draw(st.sampled_from(KINDS)), draw(st.sampled_from([4096, 2**16, 2**18, 2**20]))
    ranks = [[compute(0, 1)] for _ in range(spread * len(starts))]
    group = 1 if spread > 1 else None
    for place, start in enumerate(starts):
        ranks[spread * place] = [compute(0, start), collective(1, kind, size, [0], group=group)]
    ranked = st.sampled_from(range(len(ranks)))
    for npu in draw(st.lists(ranked, max_size=4)):
        number = 100 + len(ranks[npu])
        ranks[npu].append(compute(number, draw(st.integers(1, 300)), []))
    for npu in draw(st.lists(st.integers(0, len(starts) - 1), max_size=4)):
        last = ranks[spread * npu][-1 if draw(st.booleans()) else 1]
        after = compute(200 + len(ranks[spread * npu]), draw(st.integers(1, 50)), [last.id])
        ranks[spread * npu].append(after)
    for number in range(draw(st.integers(0, 2))):
        source, target = draw(st.permutations(range(len(ranks))))[:2]
        begin = draw(st.sampled_from(ranks[source]))
        ranks[source].append(send(300 + number, target, 5000, number, [begin.id]))
        ranks[target].append(receive(400 + number, source, 5000, number))
    if draw(st.integers(0, 2)) == 0:
        for place in range(len(starts)):
            last = draw(st.sampled_from(ranks[spread * place][1:]))
            ranks[spread * place].append(collective(500, kind, size, [last.id], group=group))
    latency_ns = draw(st.sampled_from([0.0, 1.0, 500.0, 40_000.0]))
    network = network_file(
        topology, len(ranks), draw(st.sampled_from([ONE_BYTE_PER_NS, 50.0])), latency_ns
    )
    groups = {1: list(range(0, len(ranks), 2))} if group else {}
    return Case(ranks=ranks, network=network, system=draw(systems()), groups=groups)


@pytest.mark.parametrize(("backend", "topology"), PLACES)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_rings_that_start_and_end_apart_run_as_event_by_event(backend, topology, data):
    """All times, the order of lines and spans, the number of events."""
    case = data.draw(rings(topology))

    assert outcome(case, backend) == outcome(event_by_event(case), backend)


@st.composite
def tied(draw: st.DrawFn) -> Tied:
    """Starts, and messages with or without their moves, of a few whole microseconds each."""
    unit, num_npus = draw(st.integers(1, 6)), draw(st.integers(3, 8))
    starts = draw(st.lists(st.integers(0, 6), min_size=num_npus, max_size=num_npus))
    move_ns, latency_ns = draw(st.sampled_from([1, 10, 500])), draw(st.sampled_from([0, 500, 3000]))
    system = {
        "endpoint_delay": move_ns,
        "preferred_dataset_splits": draw(st.sampled_from([1, 1, 3])),
        "active_chunks_per_dimension": draw(st.integers(1, 2)),
    }
    message_bytes = draw(st.integers(1, 6)) * 1000 - draw(st.sampled_from([0, move_ns]))
    form = draw(st.sampled_from([starts, sorted(starts), sorted(starts, reverse=True)]))
    kind, num_rounds = draw(st.sampled_from(KINDS)), draw(st.integers(1, 2))
    return kind, [1 + unit * one for one in form], message_bytes, latency_ns, num_rounds, system


def tied_case(topology: str, ring: Tied) -> Case:
    """Case of a ring alone whose reductions take no time."""
    kind, starts, message_bytes, latency_ns, num_rounds, more = ring
    system = system_file(local_mem_bw=0, **more)
    size = message_bytes * system["preferred-dataset-splits"]
    size *= 1 if kind == ALL_GATHER else len(starts)
    ranks = [rank_nodes(start, [(kind, size, None)] * num_rounds, 0, []) for start in starts]
    network = network_file(topology, len(starts), ONE_BYTE_PER_NS, latency_ns)
    return Case(ranks=ranks, network=network, system=system)


@pytest.mark.parametrize("form", TIED)
def test_steps_of_one_time_keep_the_order_of_what_has_set_them(form):
    """How far back that is sought must not change it."""
    backend, topology, ring = TIED[form]
    case = tied_case(topology, ring)

    assert outcome(case, backend) == outcome(event_by_event(case), backend)


@pytest.mark.parametrize(("backend", "topology"), [*PLACES, ("aware", "FullyConnected")])
@settings(max_examples=examples(100))
@given(ring=tied())
def test_rings_of_which_much_is_due_at_one_time_run_as_event_by_event(backend, topology, ring):
    """All times, the order of lines and spans, the number of events."""
    case = tied_case(topology, ring)

    assert outcome(case, backend) == outcome(event_by_event(case), backend)


def test_a_ring_whose_moves_take_no_time_runs_as_event_by_event():
    """Its last messages arrive as their members end, two of them at once."""
    ranks = [[compute(0, us), collective(1, ALL_REDUCE, 4096, [0])] for us in (1, 4, 1, 4, 1)]
    ranks[0].append(receive(300, 1, 3000, 7))
    ranks[1].append(send(300, 0, 3000, 7, [0]))
    system = system_file(endpoint_delay=0, local_mem_bw=0)
    case = Case(ranks=ranks, network=network_file("Ring", 5, 0.25, 1.0), system=system)

    assert outcome(case, "aware") == outcome(event_by_event(case), "aware")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("backend", "topology"), PLACES)
@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_ring_that_is_alone_has_hardly_any_event(form, backend, topology, kind, monkeypatch):
    """Whatever its members' starts; what is left is above all what starts them."""
    left_out = []
    whole = RingLife.leap

    def counted(life):
        before = life.queue.num_events
        is_known = whole(life)
        left_out.append(life.queue.num_events - before)
        return is_known

    monkeypatch.setattr(RingLife, "leap", counted)
    ranks = [[compute(0, start), collective(1, kind, 2**24, [0])] for start in FORMS[form]]
    system = system_file(preferred_dataset_splits=1, local_mem_bw=1600)
    case = Case(ranks=ranks, network=network_file(topology, 32, 50.0, 500.0), system=system)

    once = outcome(case, backend)
    assert len(left_out) == 1
    assert left_out[0] > 0.95 * once[-1]
    assert once == outcome(event_by_event(case), backend)
