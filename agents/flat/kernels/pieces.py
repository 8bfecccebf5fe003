"""Pieces of the courses that links take by any law, and what epochs see of them."""

import numpy as np

from des.base.arithmetic import goodput
from des.base.jit import kernel
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import (
    BANDWIDTH,
    BASE_LATENCY,
    LATENCY,
    LINK,
    NUM_BYTES,
    NUM_PIECES,
    RATE,
    ROUND_TRIP,
    SCRATCH,
    START,
    UNTIL,
    WIRE_TIME,
    LaneRules,
    Lanes,
)
from des.compiled.kernels.program import ProgramArrays
from des.compiled.many.layout import Course, CoursePieces, Flags, Links, Real, Runs, Whole


@kernel
def drop_past(pieces: CoursePieces, course: Course, rows: Whole, spent: Whole) -> int:
    """Forget pieces that end before epochs begin.

    Returns how many links then have none; ``spent`` (any, 2) holds their rows and numbers.
    """
    first, count, end_s = pieces.first, pieces.num_pieces, pieces.end_s
    found = 0
    for row in rows:
        own, start_s = row - pieces.first_row, course.start_s[row]
        for link in range(count.shape[1]):
            while count[own, link] > 0 and end_s[first[own, link]] <= start_s:
                first[own, link] += 1
                count[own, link] -= 1
            if count[own, link] == 0:
                spent[found, 0], spent[found, 1] = row, link
                found += 1
    return found


@kernel
def draw_starts(pieces: CoursePieces, course: Course, rows: Whole) -> None:
    """Write down the links as they are when epochs begin; each link has a piece then."""
    base_bandwidths, base_latencies = course.base.bandwidth_bytes_per_s, course.base.latency_s
    bandwidths, latencies = course.now.bandwidth_bytes_per_s, course.now.latency_s
    has_rows = base_latencies.shape[0] > 1
    for row in rows:
        origin, own = row if has_rows else 0, row - pieces.first_row
        for link in range(bandwidths.shape[1]):
            piece = pieces.first[own, link]
            bandwidths[row, link] = base_bandwidths[origin, link] * pieces.bandwidth_factor[piece]
            latencies[row, link] = base_latencies[origin, link] * pieces.latency_factor[piece]


@kernel
def mark_used(pieces: CoursePieces, runs: Runs, rows: Whole, links: Links, is_used: Flags) -> None:
    """Mark the links that placements send over, by row of the pieces and number."""
    stage_count, domains, route_start = runs.num_stages, runs.domain, links.route_start
    num_domains = links.inner_latency_s.size
    for row in rows:
        own = row - pieces.first_row
        is_used[own] = False
        for stage in range(1, stage_count[row]):
            here, there = domains[row, stage - 1], domains[row, stage]
            for way in range(2):
                pair = here * num_domains + there if way == 0 else there * num_domains + here
                for hop in range(route_start[pair], route_start[pair + 1]):
                    is_used[own, links.hops[hop]] = True


@kernel
def lay_pieces_of_lanes(
    lanes: Lanes,
    rules: LaneRules,
    pieces: CoursePieces,
    block: Whole,
    reach_s: Real,
    num_wires: int,
) -> int:
    """Write the pieces of all wires of lanes that begin within ``reach_s`` of a row.

    Where more are to come, one without bandwidth and of endless latency stands for them: no run
    that meets it ends at a finite time. Returns how many pieces the fullest wire has; where that
    is more than there is room for, nothing can be run.
    """
    room, most, own_rows = lanes.pieces.shape[1], 0, lanes.own
    for wire in range(num_wires):
        fullest = 0
        for lane in range(LANES):
            own = block[min(lane, block.size - 1)] - pieces.first_row
            num_laid = _lay_wire(lanes, rules, pieces, own, reach_s[own], wire, lane)
            own_rows[SCRATCH, lane] = num_laid
            fullest = max(fullest, num_laid)
        for lane in range(LANES):
            for piece in range(int(own_rows[SCRATCH, lane]), min(fullest, room)):
                _write(lanes, wire, piece, lane, 0.0, np.inf, np.inf)
        lanes.wires[wire, NUM_PIECES, 0] = fullest
        most = max(most, fullest)
    return most


@kernel
def _lay_wire(
    lanes: Lanes,
    rules: LaneRules,
    pieces: CoursePieces,
    own: int,
    reach_s: float,
    wire: int,
    lane: int,
) -> int:
    """Write the pieces of a wire in a lane; returns how many there are, room or not."""
    wires, room = lanes.wires, lanes.pieces.shape[1]
    link, start_s = int(wires[wire, LINK, lane]), lanes.own[START, lane]
    bandwidth, latency_s = wires[wire, BANDWIDTH, lane], wires[wire, BASE_LATENCY, lane]
    round_trip_s = wires[wire, ROUND_TRIP, lane]
    num_laid, until_s = 0, 0.0
    first = pieces.first[own, link]
    for piece in range(first, first + pieces.num_pieces[own, link]):
        until_s = pieces.end_s[piece] - start_s
        if until_s <= 0.0:
            continue
        if num_laid < room:
            factor = pieces.latency_factor[piece]
            rate = goodput(
                bandwidth * pieces.bandwidth_factor[piece],
                round_trip_s * factor,
                rules.window_bytes,
            )
            _write(lanes, wire, num_laid, lane, rate, latency_s * factor, until_s)
        num_laid += 1
        if until_s > reach_s:
            break
    if until_s < np.inf:
        if num_laid < room:
            _write(lanes, wire, num_laid, lane, 0.0, np.inf, np.inf)
        num_laid += 1
    return num_laid


@kernel
def _write(
    lanes: Lanes, wire: int, piece: int, lane: int, rate: float, latency_s: float, until_s: float
) -> None:
    """Write down a piece of a wire in a lane."""
    found = lanes.pieces
    num_bytes = lanes.wires[wire, NUM_BYTES, lane]
    found[wire, piece, RATE, lane] = rate
    found[wire, piece, WIRE_TIME, lane] = num_bytes / rate if rate > 0.0 else np.inf
    found[wire, piece, LATENCY, lane] = latency_s
    found[wire, piece, UNTIL, lane] = until_s


@kernel
def lay_pieces_of_program(
    program: ProgramArrays, pieces: CoursePieces, own: int, start_s: float
) -> None:
    """Write down the known pieces of all links, by times since an iteration began."""
    records, found, laid = program.links, program.pieces, 0
    for link in range(pieces.num_pieces.shape[1]):
        records[link].first_piece = laid
        first = pieces.first[own, link]
        for piece in range(first, first + pieces.num_pieces[own, link]):
            found[laid].until_s = pieces.end_s[piece] - start_s
            found[laid].bandwidth_factor = pieces.bandwidth_factor[piece]
            found[laid].latency_factor = pieces.latency_factor[piece]
            laid += 1
        records[link].end_piece = laid
