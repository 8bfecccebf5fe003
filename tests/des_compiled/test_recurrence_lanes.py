"""Lanes of the recurrence: worlds of their own, and those that do not end."""

import dataclasses
import math

import numpy as np
from examples import examples
from foreseen_iterations import new_record, simulate_foreseeable
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrence_cases import assert_equal
from sharing import FEW
from strategies import plan, unit_workload, world

from des import NO_CORRECTIONS, Movement, Transport, UniformLaw, simulate
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
from des.compiled.operation_table import PASSES, operation_table
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import stage_times_s

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
    law = UniformLaw(
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
    stages = bound_stages(topology, CHAIN)
    for stage, times_s in enumerate(stage_times_s(workload, stages, NO_CORRECTIONS)):
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
