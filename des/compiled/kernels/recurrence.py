"""Iterations whose order is known beforehand: the times of all operations by recurrence.

Where nothing that happens can change the order of anything, an operation starts when the stage has
ended the one before and the input has arrived, and a message takes the wire when it is ready and
the one before has left. So a table of operations, see `des.compiled.operation_table`, is gone
through once for all lanes. Links stand still. Times are those of `des.engine.iteration` and
`des.engine.wire` to the last bit.
"""

import numpy as np

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import Rows, Vector, larger, load, splat, store, vector_rows
from des.compiled.kernels.lanes import (
    LAST_ARRIVAL,
    LATENCY,
    OVERHEAD,
    STAGE_BUSY,
    STAGE_FREE,
    STAGE_ROWS,
    WIRE_BUSY,
    WIRE_FREE,
    WIRE_ROWS,
    WIRE_TIME,
    Lanes,
    Record,
)


@kernel
def run_lanes(lanes: Lanes, rows: np.ndarray, num_stages: int, record: Record) -> None:
    """Run one iteration in all lanes.

    Parameters
    ----------
    rows
        Those of an operation table.
    """
    stages, wires, arrivals = (
        vector_rows(lanes.stages),
        vector_rows(lanes.wires),
        vector_rows(lanes.arrivals),
    )
    spans, transfers = vector_rows(record.spans), vector_rows(record.transfers)
    is_recorded = record.spans.shape[0] > 0
    _begin(stages, wires, arrivals, num_stages)
    for row in range(rows.shape[0]):
        start, end = _compute(stages, rows[row, 0], rows[row, 1], load(arrivals, rows[row, 2]))
        if is_recorded:
            store(spans, 2 * row, start)
            store(spans, 2 * row + 1, end)
        wire = rows[row, 3] - 1
        if wire < 0:
            continue
        at = wire * WIRE_ROWS
        taken = larger(end, load(wires, at + WIRE_FREE))
        left = taken + load(wires, at + OVERHEAD) + load(wires, at + WIRE_TIME)
        arrival = _fly(wires, at, taken, left)
        store(arrivals, rows[row, 4], arrival)
        if is_recorded:
            store(transfers, 3 * row, taken)
            store(transfers, 3 * row + 1, left)
            store(transfers, 3 * row + 2, arrival)
    makespan = load(stages, STAGE_FREE)
    for stage in range(1, num_stages):
        makespan = larger(makespan, load(stages, stage * STAGE_ROWS + STAGE_FREE))
    store(vector_rows(lanes.makespan_s), 0, makespan)


@kernel
def _begin(stages: Rows, wires: Rows, arrivals: Rows, num_stages: int) -> None:
    """Let all stages and wires be free, and nothing to wait for have arrived."""
    zero = splat(0.0)
    store(arrivals, 0, zero)
    for stage in range(num_stages):
        store(stages, stage * STAGE_ROWS + STAGE_BUSY, zero)
        store(stages, stage * STAGE_ROWS + STAGE_FREE, zero)
    for wire in range(2 * (num_stages - 1)):
        for row in (WIRE_BUSY, WIRE_FREE, LAST_ARRIVAL):
            store(wires, wire * WIRE_ROWS + row, zero)


@kernel
def _compute(stages: Rows, stage: int, kind: int, arrival: Vector) -> tuple[Vector, Vector]:
    """Run an operation of a stage, whose input arrives; returns its start and end. [s]"""
    at = stage * STAGE_ROWS
    start, duration = larger(load(stages, at + STAGE_FREE), arrival), load(stages, at + kind)
    end = start + duration
    store(stages, at + STAGE_FREE, end)
    store(stages, at + STAGE_BUSY, load(stages, at + STAGE_BUSY) + duration)
    return start, end


@kernel
def _fly(wires: Rows, at: int, taken: Vector, left: Vector) -> Vector:
    """Let messages leave a wire, whose first row is given; returns when they arrive. [s]"""
    flown = left + load(wires, at + LATENCY)
    arrival = larger(flown, load(wires, at + LAST_ARRIVAL))
    store(wires, at + WIRE_FREE, left)
    store(wires, at + LAST_ARRIVAL, arrival)
    store(wires, at + WIRE_BUSY, load(wires, at + WIRE_BUSY) + (left - taken))
    return arrival
