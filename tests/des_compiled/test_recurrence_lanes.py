"""Lanes of the recurrence are worlds of their own."""

import dataclasses

import numpy as np
from examples import examples
from foreseen_iterations import new_record, simulate_foreseeable
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrence_cases import assert_equal
from sharing import FEW
from strategies import plan, unit_workload, world

from des import NO_CORRECTIONS, Transport, simulate
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import LATENCY, STAGE_BUSY, WIRE_BUSY, WIRE_TIME
from des.compiled.kernels.recurrence import run_lanes
from des.compiled.lanes import new_lanes, no_record
from des.compiled.operation_table import PASSES, operation_table
from des.costs.bound_stages import bound_stages
from des.costs.message_times import hop_goodput_bytes_per_s
from des.costs.stage_times import stage_times_s

CHAIN = plan(0, 1, 2)


def drawn_worlds(seed, window_bytes):
    """A world and a workload a lane."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(LANES):
        links = {ends: tuple(rng.uniform(0.5, 2.0, 2)) for ends in ("AB", "BA", "BC", "CB")}
        transport = Transport(window_bytes=window_bytes)
        topology = dataclasses.replace(world("ABC", links), transport=transport)
        passes_s = [tuple(rng.uniform(0.1, 1.0, 2)) for _ in range(3)]
        found.append((topology, unit_workload(passes_s, num_microbatches=4, message_bytes=1.0)))
    return found


@settings(max_examples=examples(FEW))
@given(seed=st.integers(0, 2**32 - 1), window_bytes=st.none() | st.just(1.0))
def test_lanes_are_worlds_of_their_own(seed, window_bytes):
    worlds = drawn_worlds(seed, window_bytes)
    table = operation_table("1f1b", 3, 4)
    lanes, record = new_lanes(5, table.num_slots + 2), new_record(table)
    for lane, (topology, workload) in enumerate(worlds):
        fill(lanes, lane, topology, workload)

    for _ in range(2):  # the second run finds what the first has left
        run_lanes(lanes, table.rows, 3, record)
    for lane, (topology, workload) in enumerate(worlds):
        found = simulate_foreseeable(topology, workload, CHAIN)
        assert_equal(found, simulate(topology, workload, CHAIN))
        assert lanes.makespan_s[0, lane] == found.makespan_s
        assert lanes.stages[:3, STAGE_BUSY, lane].tolist() == found.busy_s.tolist()
        assert lanes.wires[:4, WIRE_BUSY, lane].tolist() == found.wire_busy_s.tolist()
        assert record.spans[table.span_rows, :, lane].tolist() == found.spans.tolist()
        assert record.transfers[table.sent_rows, :, lane].tolist() == found.transfers.tolist()
    makespans_s = lanes.makespan_s.tolist()
    run_lanes(lanes, table.rows, 3, no_record())
    assert lanes.makespan_s.tolist() == makespans_s


def fill(lanes, lane, topology, workload):
    """Put a chain of three stages of one layer into a lane."""
    stages = bound_stages(topology, CHAIN)
    for stage, times_s in enumerate(stage_times_s(workload, stages, NO_CORRECTIONS)):
        lanes.stages[stage, :4, lane] = [times_s[kind] for kind in PASSES]
    for wire, ends in enumerate(((0, 1), (1, 0), (1, 2), (2, 1))):
        index = topology.link_index[ends]
        lanes.wires[wire, WIRE_TIME, lane] = 1.0 / hop_goodput_bytes_per_s(topology, index)
        lanes.wires[wire, LATENCY, lane] = topology.links[index].latency_s
