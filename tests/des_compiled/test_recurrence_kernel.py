"""The recurrence over lanes gives the simulation's times to the last bit, wherever it applies."""

import dataclasses
import math
from itertools import chain

import numpy as np
import pytest
from examples import examples
from foreseen_iterations import MOST_PIECES, new_record, simulate_foreseeable
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import courses, moving, with_transport
from sharing import FEW, parallel_cases
from strategies import (
    STATIC_SCHEDULES,
    cases,
    corrections,
    movements,
    plan,
    unit_workload,
    world,
)

from des import (
    NO_CORRECTIONS,
    Dynamics,
    Movement,
    Parallelism,
    StarvationError,
    Transport,
    simulate,
)
from des.compiled.eligibility import is_foreseeable
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import (
    BANDWIDTH,
    BASE_LATENCY,
    LINK,
    MAKESPAN,
    NUM_BYTES,
    ROUND_TRIP,
    STAGE_BUSY,
    START,
    STATUS,
    WIRE_BUSY,
    LaneRules,
)
from des.compiled.kernels.program import OK, STARVED, STEADY, UNIFORM
from des.compiled.kernels.recurrence import run_lanes
from des.compiled.lanes import new_lanes, no_record
from des.compiled.operation_table import NOTHING, PASSES, operation_table
from des.costs.stage_times import stage_times_s
from des.dynamics import LinkSeries, Replay
from des.dynamics.link_course import Weather
from des.schedules import stage_orders
from des.schedules.check import input_of


def spans(found):
    """Spans as the engine gives them."""
    operations = [found.table.operations[row] for row in found.table.span_rows]
    return [
        (stage, kind, microbatch, *times_s)
        for (kind, microbatch, stage), times_s in zip(operations, found.spans.tolist(), strict=True)
    ]


def transfers(found):
    """Transfers as the engine gives them: link by link."""
    rows = []
    for link, senders, times_s in zip(
        found.links, found.table.sent_rows, found.transfers.tolist(), strict=True
    ):
        for row, times in zip(senders, times_s, strict=True):
            kind, microbatch, stage = found.table.operations[row]
            rows.append((link, stage, "F" if kind == "F" else "B", microbatch, *times))
    return sorted((row for row in rows if row[0] is not None), key=lambda row: row[0])


def assert_equal(found, result):
    """Every figure is that of the engine."""
    assert found.makespan_s == result.makespan_s
    assert spans(found) == [tuple(span) for span in result.spans]
    assert transfers(found) == [tuple(transfer) for transfer in result.transfers]
    assert found.busy_s.tolist() == [stage.busy_s for stage in result.stages]
    for link, busy_s in zip(found.links, found.wire_busy_s.tolist(), strict=True):
        assert link is None or busy_s == result.links[link].busy_s


def most_pieces(topology, result):
    """Pieces of the course of a link in use until the end of an iteration, of the most changing."""
    weather = Weather(topology.movement, topology.links)
    counts = [0]
    for link, use in enumerate(result.links):
        time_s, pieces = 0.0, 0
        while use.num_messages and time_s <= result.makespan_s:
            time_s, pieces = weather.piece(link, time_s)[2], pieces + 1
        counts.append(pieces)
    return max(counts)


def assert_foreseen(topology, workload, chosen, corrected=NO_CORRECTIONS):
    assert is_foreseeable(topology, workload, chosen)
    found = simulate_foreseeable(topology, workload, chosen, corrected)
    result = simulate(topology, workload, chosen, corrected)
    if found is None:
        assert most_pieces(topology, result) >= MOST_PIECES
        return
    assert_equal(found, result)


@given(
    schedule=st.sampled_from(STATIC_SCHEDULES),
    num_stages=st.integers(1, 6),
    num_microbatches=st.integers(1, 10),
)
def test_in_a_table_every_operation_finds_its_message_in_its_slot(
    schedule, num_stages, num_microbatches
):
    table = operation_table(schedule, num_stages, num_microbatches)
    slots = {}
    orders = [[] for _ in range(num_stages)]
    for operation, row in zip(table.operations, table.rows.tolist(), strict=True):
        stage, kind, slot, wire, made = row
        orders[stage].append(operation)
        assert (PASSES[kind], stage) == (operation.kind, operation.stage)
        needed = input_of(operation, num_stages)
        assert (slot == NOTHING) == (needed is None)
        assert slots.pop(slot, None) == needed
        if wire:
            upward = operation.kind != "F"
            assert wire - 1 == 2 * (stage - upward) + upward
            assert made not in slots
            slots[made] = ("B" if upward else "F", operation.microbatch, stage)
            assert NOTHING < made < table.num_slots
    assert not slots
    assert tuple(map(tuple, orders)) == stage_orders(schedule, num_stages, num_microbatches)
    assert [table.operations[row] for row in table.span_rows] == list(chain(*orders))


@settings(max_examples=examples(3 * FEW))
@given(
    case=cases(fully=True, single_visit=True),
    movement=st.none() | movements(),
    window_bytes=st.none() | st.floats(1e5, 1e9),
    compression=st.sampled_from([1.0, 4.0]),
    corrected=corrections(),
)
def test_a_foreseeable_iteration_is_the_simulated_one(
    case, movement, window_bytes, compression, corrected
):
    """Whatever the law of the links, the schedule, the TCP window and the overhead of messages."""
    topology, workload, chosen = case
    transport = dataclasses.replace(topology.transport, window_bytes=window_bytes)
    topology = dataclasses.replace(topology, movement=movement, transport=transport)
    chosen = dataclasses.replace(chosen, activation_compression=compression)

    assert_foreseen(topology, workload, chosen, corrected)


@settings(max_examples=examples(FEW))
@given(
    case=parallel_cases(fully=True, single_visit=True, max_replicas=1),
    movement=st.none() | movements(),
    corrected=corrections(),
)
def test_so_is_one_with_several_devices_in_a_domain(case, movement, corrected):
    """Wires inside a domain stand still whatever the links do."""
    topology, workload, chosen = case
    topology = dataclasses.replace(topology, movement=movement)
    alone = tuple(dataclasses.replace(one, data=1) for one in chosen.parallelism)

    assert_foreseen(topology, workload, dataclasses.replace(chosen, parallelism=alone), corrected)


@settings(max_examples=examples(2 * FEW))
@given(
    schedule=st.sampled_from(STATIC_SCHEDULES),
    factors=st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(0, 2)), max_size=6
    ),
    num_bytes=st.integers(0, 4),
)
def test_so_is_one_whose_messages_end_just_when_links_change(schedule, factors, num_bytes):
    """Whole seconds throughout, so that ends, starts and changes coincide; links come back."""
    steps = [(float(second), *each) for second, each in enumerate(factors, start=1)]
    topology = moving(
        world("ABC", dict.fromkeys(("AB", "BC", "CB", "BA"), (1.0, 1.0))), *steps, (9.0, 1.0, 1.0)
    )
    workload = unit_workload([(1, 2)] * 3, num_microbatches=4, message_bytes=float(num_bytes))

    assert_foreseen(topology, workload, plan(0, 1, 2, schedule=schedule))


@settings(max_examples=examples(FEW))
@given(case=cases(min_domains=2, fully=True, single_visit=True), steps=courses())
def test_so_is_one_with_outages_that_end(case, steps):
    topology, workload, chosen = case

    assert_foreseen(moving(topology, *steps), workload, chosen)


def two_domains(**links):
    return world("AB", {"AB": (1.0, 1.0), "BA": (1.0, 1.0)} | links)


def two_stages(num_microbatches=1, message_bytes=4.0):
    return unit_workload(
        [(1, 2)] * 2, num_microbatches=num_microbatches, message_bytes=message_bytes
    )


def test_a_message_crosses_a_change_of_its_link_by_hand():
    """4 bytes from 1 s on: 2 at 1 byte/s until 3 s, 2 at 2 bytes/s; then 3 s of flight: 7 s.

    B then computes for 3 s, and its 4 bytes take 2 s and fly for 3 s: A goes on at 15 s.
    """
    topology = moving(two_domains(), (3.0, 2.0, 3.0))

    found = simulate_foreseeable(topology, two_stages(), plan(0, 1))
    assert found.transfers.tolist() == [[[1.0, 4.0, 7.0]], [[10.0, 12.0, 15.0]]]
    assert found.spans.tolist() == [[0.0, 1.0], [15.0, 17.0], [7.0, 8.0], [8.0, 10.0]]
    assert found.makespan_s == 17.0
    assert found.busy_s.tolist() == [3.0, 3.0]
    assert found.wire_busy_s.tolist() == [3.0, 2.0]


@pytest.mark.parametrize(
    ("ready_s", "num_bytes", "bandwidth", "change_s"),
    [
        # It ends after the change, and yet all of it fits into the time before.
        (2.030152440741723, 21.215814392343916, 4.551227390341859, 6.691711306678834),
        # It ends at the change, and yet a part of it does not fit into the time before.
        (3.0, 4.0, 1.9, 5.105263157894736),
    ],
)
def test_a_message_is_through_when_its_link_slows_down_rounding_aside(
    ready_s, num_bytes, bandwidth, change_s
):
    """What rounding has left over or short counts for nothing, though the link is slow then."""
    topology = moving(two_domains(AB=(bandwidth, 1.0)), (change_s, 0.001, 1.0))
    workload = unit_workload(
        [(ready_s, 1.0), (1.0, 1.0)], num_microbatches=1, message_bytes=num_bytes
    )
    rest = num_bytes - (change_s - ready_s) * bandwidth
    assert rest != 0.0
    assert (ready_s + num_bytes / bandwidth > change_s) == (rest < 0.0)

    found = simulate_foreseeable(topology, workload, plan(0, 1))
    assert found.transfers[0, 0, 1] == change_s
    assert_equal(found, simulate(topology, workload, plan(0, 1)))


@pytest.mark.parametrize(("num_steps", "is_enough"), [(200, True), (3000, False)])
def test_courses_of_many_pieces_are_extended_up_to_a_limit(num_steps, is_enough):
    """A message of 40 bytes sees about 400 changes, or thousands."""
    gap_s = 20.0 / num_steps
    steps = [(gap_s * step, 1.0 + step % 2, 1.0) for step in range(1, num_steps)]
    case = moving(two_domains(), *steps), two_stages(message_bytes=40.0), plan(0, 1)

    if is_enough:
        assert_foreseen(*case)
    else:
        assert simulate_foreseeable(*case) is None


def test_a_link_that_never_comes_back_ends_nothing():
    case = moving(two_domains(), (2.0, 0.0, 1.0)), two_stages(), plan(0, 1)

    assert simulate_foreseeable(*case) is None
    with pytest.raises(StarvationError, match="link A->B: is down for ever from 2 s on"):
        simulate(*case)


def trace(end_s):
    """Steady links until a time, when the trace ends."""
    series = (
        LinkSeries(
            source=ends[0],
            target=ends[1],
            times_s=(0.0, end_s),
            bandwidths_bytes_per_s=(1.0, 1.0),
            latencies_s=(1.0, 1.0),
        )
        for ends in ("AB", "BA")
    )
    return Replay(name="trace.csv", series=tuple(series))


def test_a_trace_must_cover_what_is_sent_and_nothing_more():
    """The last message leaves at 13 s."""
    case = two_stages(), plan(0, 1)
    short, long = (
        dataclasses.replace(two_domains(), movement=Movement(law=trace(end_s), seed=0))
        for end_s in (13.0, 13.5)
    )

    assert simulate_foreseeable(short, *case) is None
    with pytest.raises(ValueError, match="trace must cover the run"):
        simulate(short, *case)
    assert_foreseen(long, *case)


CHAIN = plan(0, 1, 2)


def drawn_worlds(law, seed, window_bytes):
    """A world and a workload a lane; the course of the first begins with its law."""
    rng = np.random.default_rng(seed)
    found = []
    for lane in range(LANES):
        links = {ends: tuple(rng.uniform(0.5, 2.0, 2)) for ends in ("AB", "BA", "BC", "CB")}
        start_s = rng.uniform(0.0, 1e3) if lane else 0.0
        topology = dataclasses.replace(
            world("ABC", links),
            movement=Movement(law=law, seed=int(rng.integers(2**63)), start_s=start_s),
            transport=Transport(window_bytes=window_bytes),
        )
        passes_s = [tuple(rng.uniform(0.1, 1.0, 2)) for _ in range(3)]
        found.append((topology, unit_workload(passes_s, num_microbatches=4, message_bytes=1.0)))
    return found


@settings(max_examples=examples(FEW))
@given(
    fluctuations=st.tuples(st.floats(0.0, 0.95), st.floats(0.0, 0.95)),
    interval_s=st.sampled_from([None, 0.05, 0.5, 3.0, 30.0]),
    seed=st.integers(0, 2**32 - 1),
    num_pieces=st.sampled_from([1, 3, 32]),
    window_bytes=st.none() | st.just(1.0),
)
def test_lanes_are_worlds_of_their_own(fluctuations, interval_s, seed, num_pieces, window_bytes):
    """Wherever the pieces that are worked out for all lanes end, and whatever the others do.

    Without an interval, links change just when the first message of the first lane has left.
    """
    law = Dynamics(
        bandwidth_fluctuation=fluctuations[0],
        latency_jitter=fluctuations[1],
        update_interval_s=interval_s or 1e9,
    )
    worlds = drawn_worlds(law, seed, window_bytes)
    if interval_s is None:
        first = min(simulate(*worlds[0], CHAIN).transfers, key=lambda transfer: transfer.start_s)
        law = dataclasses.replace(law, update_interval_s=first.end_s)
        worlds = drawn_worlds(law, seed, window_bytes)
    table = operation_table("1f1b", 3, 4)
    lanes, record = new_lanes(5, table.num_slots + 2, num_pieces), new_record(table)
    for lane, (topology, workload) in enumerate(worlds):
        fill(lanes, lane, topology, workload)
    rules = LaneRules(
        weather=UNIFORM,
        window_bytes=math.inf if window_bytes is None else window_bytes,
        interval_s=law.update_interval_s,
        bandwidth_fluctuation=law.bandwidth_fluctuation,
        latency_jitter=law.latency_jitter,
    )

    for _ in range(2):  # the second run finds what the first has left
        assert run_lanes(lanes, rules, table.rows, 3, record) == 0
    for lane, (topology, workload) in enumerate(worlds):
        found = simulate_foreseeable(topology, workload, CHAIN)
        assert_equal(found, simulate(topology, workload, CHAIN))
        assert lanes.own[MAKESPAN, lane] == found.makespan_s
        assert lanes.stages[:3, STAGE_BUSY, lane].tolist() == found.busy_s.tolist()
        assert lanes.wires[:4, WIRE_BUSY, lane].tolist() == found.wire_busy_s.tolist()
        assert record.spans[table.span_rows, :, lane].tolist() == found.spans.tolist()
        assert record.transfers[table.sent_rows, :, lane].tolist() == found.transfers.tolist()
    makespans_s = lanes.own[MAKESPAN].tolist()
    assert run_lanes(lanes, rules, table.rows, 3, no_record()) == 0
    assert lanes.own[MAKESPAN].tolist() == makespans_s


def test_a_lane_that_comes_to_no_end_is_told_and_forgotten():
    """The first message of lane 3 never leaves; without latency 4 bytes at 1 byte/s take 4 s."""
    table = operation_table("gpipe", 2, 1)
    lanes = new_lanes(2, table.num_slots)
    lanes.stages[:, :2] = 1.0
    lanes.wires[:, BANDWIDTH], lanes.wires[:, NUM_BYTES] = 1.0, 4.0
    rules = LaneRules(
        weather=STEADY,
        window_bytes=math.inf,
        interval_s=math.inf,
        bandwidth_fluctuation=0.0,
        latency_jitter=0.0,
    )
    lanes.wires[0, BANDWIDTH, 3] = 0.0

    assert run_lanes(lanes, rules, table.rows, 2, no_record()) == 1 << 3
    assert lanes.own[STATUS].tolist() == [STARVED if lane == 3 else OK for lane in range(LANES)]
    assert np.delete(lanes.own[MAKESPAN], 3).tolist() == [12.0] * (LANES - 1)
    lanes.wires[0, BANDWIDTH, 3] = 2.0
    assert run_lanes(lanes, rules, table.rows, 2, no_record()) == 0
    assert lanes.own[MAKESPAN].tolist() == [10.0 if lane == 3 else 12.0 for lane in range(LANES)]


def fill(lanes, lane, topology, workload):
    """Put a chain of three stages of one layer into a lane."""
    stages = CHAIN.placement.stages
    for stage, times_s in enumerate(stage_times_s(topology, workload, stages, NO_CORRECTIONS)):
        lanes.stages[stage, :4, lane] = [times_s[kind] for kind in PASSES]
    for wire, ends in enumerate(((0, 1), (1, 0), (1, 2), (2, 1))):
        index = topology.link_index[ends]
        link = topology.links[index]
        lanes.wires[wire, BANDWIDTH, lane] = link.bandwidth_bytes_per_s
        lanes.wires[wire, BASE_LATENCY, lane] = link.latency_s
        lanes.wires[wire, ROUND_TRIP, lane] = topology.round_trip_s(index)
        lanes.wires[wire, NUM_BYTES, lane] = 1.0
        lanes.wires[wire, LINK, lane] = index
    lanes.own[START, lane] = topology.movement.start_s
    lanes.seed[lane] = topology.movement.seed


FORESEEABLE = (
    world("ABC", dict.fromkeys(("AB", "BA", "BC", "CB", "AC"), (1.0, 1.0))),
    unit_workload([(1, 2)] * 4, num_microbatches=2, message_bytes=1.0),
    plan(0, 1, 1, 2),
)


def with_gpus(topology):
    """Four GPUs in each domain."""
    domains = tuple(dataclasses.replace(domain, num_gpus=4) for domain in topology.domains)
    return dataclasses.replace(topology, domains=domains)


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        ({"sharing": "fair"}, {}),
        ({"sharing": "none"}, {}),
        ({"endpoints": "one_in_flight"}, {}),
        ({"endpoints": "blocking"}, {}),
        ({"half_duplex": True}, {}),
        ({}, {"schedule": "greedy"}),
        ({}, {"placement": plan(0, 1, 0, 2).placement}),  # a device has two stages
        ({}, {"placement": plan(0, 0, 2, 2).placement}),  # no direct link back
        ({}, {"placement": plan(0, 0, 1, 1).placement, "replicas": (plan(2, 2, 2, 2).placement,)}),
        ({}, {"parallelism": (Parallelism(data=2),) * 3}),  # sums up gradients
    ],
)
def test_anything_that_could_change_an_order_is_noticed(rules, fields):
    topology, workload, chosen = FORESEEABLE
    assert is_foreseeable(topology, workload, chosen)
    assert is_foreseeable(
        with_gpus(topology),
        workload,
        dataclasses.replace(chosen, parallelism=(Parallelism(tensor=2),) * 3),
    )

    topology = with_gpus(with_transport(topology, **rules))
    assert not is_foreseeable(topology, workload, dataclasses.replace(chosen, **fields))
