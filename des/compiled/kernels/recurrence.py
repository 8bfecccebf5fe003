"""Iterations whose order is known beforehand: the times of all operations by recurrence.

Where nothing that happens can change the order of anything, an operation starts when the stage has
ended the one before and the input has arrived, and a message takes the wire when it is ready and
the one before has left. So a table of operations, see `des.compiled.operation_table`, is gone
through once for all lanes. Times are those of `des.engine.iteration` and `des.engine.wire` to the
last bit.
"""

import numpy as np

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import (
    ALL_LANES,
    LANES,
    Rows,
    Vector,
    below,
    equal,
    larger,
    load,
    splat,
    store,
    vector_rows,
)
from des.compiled.kernels.lanes import (
    FIRST_SEGMENT,
    LAST_ARRIVAL,
    LATENCY,
    MAKESPAN,
    OVERHEAD,
    PIECE,
    PIECE_ROWS,
    PRESENT,
    STAGE_BUSY,
    STAGE_FREE,
    STAGE_ROWS,
    START,
    STATUS,
    UNTIL,
    WIRE_BUSY,
    WIRE_FREE,
    WIRE_ROWS,
    WIRE_TIME,
    LaneRules,
    Lanes,
    Record,
)
from des.compiled.kernels.moving_wires import cross, draw_piece
from des.compiled.kernels.program import OK, TABLE, UNIFORM
from des.dynamics.uniform_course import segment_ruling


@kernel
def run_lanes(
    lanes: Lanes, rules: LaneRules, rows: np.ndarray, num_stages: int, record: Record
) -> int:
    """Run one iteration in all lanes; returns the mask of the lanes in which it did not end.

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
    pieces, own, most_pieces = (
        vector_rows(lanes.pieces),
        vector_rows(lanes.own),
        lanes.pieces.shape[1],
    )
    spans, transfers = vector_rows(record.spans), vector_rows(record.transfers)
    is_recorded = record.spans.shape[0] > 0
    _begin(stages, arrivals, own, rules, num_stages)
    for each in range(2 * (num_stages - 1)):
        _lay_wire(wires, pieces, own, most_pieces, rules, each)
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
        ready = taken + load(wires, at + OVERHEAD)
        left = ready + load(wires, at + PRESENT + WIRE_TIME)
        crossing = ALL_LANES & ~below(left, load(wires, at + PRESENT + UNTIL))
        if crossing != 0:
            left = cross(wires, pieces, own, most_pieces, rules, wire, crossing, ready, left)
        arrival = _fly(wires, at, taken, left)
        store(arrivals, rows[row, 4], arrival)
        if is_recorded:
            store(transfers, 3 * row, taken)
            store(transfers, 3 * row + 1, left)
            store(transfers, 3 * row + 2, arrival)
    return _end(stages, own, num_stages)


@kernel
def _begin(stages: Rows, arrivals: Rows, own: Rows, rules: LaneRules, num_stages: int) -> None:
    """Let all stages be free, and nothing to wait for have arrived."""
    zero = splat(0.0)
    for stage in range(num_stages):
        store(stages, stage * STAGE_ROWS + STAGE_BUSY, zero)
        store(stages, stage * STAGE_ROWS + STAGE_FREE, zero)
    store(arrivals, 0, zero)
    store(own, STATUS, splat(OK))
    if rules.weather == UNIFORM:
        for lane in range(LANES):
            own[FIRST_SEGMENT, lane] = segment_ruling(own[START, lane], 0.0, rules.interval_s)


@kernel
def _lay_wire(
    wires: Rows, pieces: Rows, own: Rows, most_pieces: int, rules: LaneRules, wire: int
) -> None:
    """Let a wire be free, at the first piece of its course."""
    at, first = wire * WIRE_ROWS, wire * most_pieces * PIECE_ROWS
    for row in (WIRE_BUSY, WIRE_FREE, LAST_ARRIVAL, PIECE):
        store(wires, at + row, splat(0.0))
    if rules.weather != TABLE:
        draw_piece(wires, pieces, own, most_pieces, rules, wire, 0)
    for row in range(PIECE_ROWS):
        store(wires, at + PRESENT + row, load(pieces, first + row))


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
    flown = left + load(wires, at + PRESENT + LATENCY)
    arrival = larger(flown, load(wires, at + LAST_ARRIVAL))
    store(wires, at + WIRE_FREE, left)
    store(wires, at + LAST_ARRIVAL, arrival)
    store(wires, at + WIRE_BUSY, load(wires, at + WIRE_BUSY) + (left - taken))
    return arrival


@kernel
def _end(stages: Rows, own: Rows, num_stages: int) -> int:
    """Work out the makespans; returns the lanes that have none."""
    makespan = load(stages, STAGE_FREE)
    for stage in range(1, num_stages):
        makespan = larger(makespan, load(stages, stage * STAGE_ROWS + STAGE_FREE))
    store(own, MAKESPAN, makespan)
    failed: int = ALL_LANES & ~equal(load(own, STATUS), splat(OK))
    return failed
