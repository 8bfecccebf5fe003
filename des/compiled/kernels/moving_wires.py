"""Wires whose figures change while an iteration runs, in all lanes at once.

A wire's course is a row of pieces, each with its rate and latency; lanes are at pieces of their
own. The next piece of a drawn course is drawn for all lanes when the first of them reaches it.
"""

import math
from typing import TypeAlias

from des.base.arithmetic import goodput, serialisation_end_s
from des.base.jit import kernel
from des.base.scalar import scalar
from des.compiled.kernels.intrinsics import (
    LANES,
    Rows,
    Vector,
    below,
    choose,
    equal,
    first_lane,
    lane_of,
    load,
    splat,
    store,
    whole_number_in,
)
from des.compiled.kernels.lanes import (
    BANDWIDTH,
    BASE_LATENCY,
    FIRST_SEGMENT,
    LATENCY,
    LINK,
    MORE_SCRATCH,
    NUM_BYTES,
    NUM_PIECES,
    PIECE,
    PIECE_ROWS,
    PRESENT,
    RATE,
    ROUND_TRIP,
    SCRATCH,
    SEED,
    START,
    STATUS,
    UNTIL,
    WIRE_ROWS,
    WIRE_TIME,
    LaneRules,
)
from des.compiled.kernels.program import BEYOND, OK, STARVED, UNIFORM
from des.dynamics.uniform_course import segment_ruling, uniform_factors

Place: TypeAlias = tuple[Rows, Rows, Rows, int, LaneRules, int, int]
"""Wires, pieces, lanes' own rows, most pieces, rules, and one wire and lane."""


Figures: TypeAlias = tuple[Vector, Vector, Vector, Vector]
"""Rows of a piece, in order."""


@kernel
def draw_piece(
    wires: Rows, pieces: Rows, own: Rows, most_pieces: int, rules: LaneRules, wire: int, piece: int
) -> None:
    """Work out a piece of a wire in all lanes, which must be the first that is not known."""
    at, one, never = wire * WIRE_ROWS, splat(1.0), splat(math.inf)
    bandwidth_factor = latency_factor = one
    until = never
    if rules.weather == UNIFORM:
        for lane in range(LANES):
            own[SCRATCH, lane], own[MORE_SCRATCH, lane] = uniform_factors(
                whole_number_in(own[SEED, lane]),
                int(wires[at + LINK, lane]),
                int(own[FIRST_SEGMENT, lane]) + piece,
                rules.bandwidth_fluctuation,
                rules.latency_jitter,
            )
        stands = below(load(wires, at + LINK), splat(0.0))
        bandwidth_factor = choose(stands, one, load(own, SCRATCH))
        latency_factor = choose(stands, one, load(own, MORE_SCRATCH))
        next_segment = load(own, FIRST_SEGMENT) + splat(piece + 1)
        until = choose(stands, never, next_segment * splat(rules.interval_s) - load(own, START))
    rate = load(wires, at + BANDWIDTH) * bandwidth_factor
    if rules.window_bytes < math.inf:
        store(own, SCRATCH, rate)
        store(own, MORE_SCRATCH, load(wires, at + ROUND_TRIP) * latency_factor)
        for lane in range(LANES):
            own[SCRATCH, lane] = goodput(
                own[SCRATCH, lane], own[MORE_SCRATCH, lane], rules.window_bytes
            )
        rate = load(own, SCRATCH)
    row = (wire * most_pieces + piece) * PIECE_ROWS
    wire_time = load(wires, at + NUM_BYTES) / rate
    store(pieces, row + RATE, rate)
    store(pieces, row + WIRE_TIME, choose(below(splat(0.0), rate), wire_time, never))
    store(pieces, row + LATENCY, load(wires, at + BASE_LATENCY) * latency_factor)
    store(pieces, row + UNTIL, until)
    wires[at + NUM_PIECES, 0] = piece + 1


@kernel
def cross(
    wires: Rows, pieces: Rows, own: Rows, most_pieces: int, rules: LaneRules, wire: int,
    crossing: int, ready: Vector, left: Vector,
) -> Vector:  # fmt: skip
    """Take messages over the ends of the present pieces; returns when they have left. [s]

    ``crossing`` are the lanes whose message is not through before its piece ends, ``left`` is when
    it would be through. As `serialisation_end_s` does it, lane by lane to the last bit: all lanes
    at the same piece advance to the next one together, until none is left. What is rare is done
    lane by lane.
    """
    at = wire * WIRE_ROWS
    present, piece = _figures(wires, at + PRESENT), load(wires, at + PIECE)
    start, rest, rare = ready, load(wires, at + NUM_BYTES), 0
    while crossing != 0:
        now = lane_of(piece, first_lane(crossing))
        together = crossing & equal(piece, splat(now))
        following = int(now) + 1
        if following >= wires[at + NUM_PIECES, 0]:
            if rules.weather != UNIFORM or following >= most_pieces:
                rare |= together
                crossing &= ~together
                continue
            draw_piece(wires, pieces, own, most_pieces, rules, wire, following)
        coming = _figures(pieces, (wire * most_pieces + following) * PIECE_ROWS)
        rate, until = present[RATE], present[UNTIL]
        goes_on = ~below(start, until) | equal(rate, coming[RATE])  # from the same start
        cut = rest - (until - start) * rate
        cuts_well = below(until, left) & below(splat(0.0), cut)  # not through at the border
        odd = together & ~(below(until, splat(math.inf)) & (goes_on | cuts_well))
        rare |= odd
        together &= ~odd
        cuts = together & ~goes_on
        start, rest = choose(cuts, until, start), choose(cuts, cut, rest)
        left = choose(together, start + rest / coming[RATE], left)
        present = _change(together, coming, present)
        piece = choose(together, splat(following), piece)
        crossing &= ~odd & ~below(left, present[UNTIL])
    _keep(wires, at, present, piece)
    if rare != 0:
        return _carry_each(wires, pieces, own, most_pieces, rules, wire, rare, ready, left)
    return left


@kernel
def _figures(rows: Rows, first: int) -> Figures:
    """Figures of a piece, whose first row is given."""
    return (
        load(rows, first + RATE),
        load(rows, first + WIRE_TIME),
        load(rows, first + LATENCY),
        load(rows, first + UNTIL),
    )


@kernel
def _change(mask: int, coming: Figures, present: Figures) -> Figures:
    """Take the figures of another piece in the lanes of a mask."""
    return (
        choose(mask, coming[RATE], present[RATE]),
        choose(mask, coming[WIRE_TIME], present[WIRE_TIME]),
        choose(mask, coming[LATENCY], present[LATENCY]),
        choose(mask, coming[UNTIL], present[UNTIL]),
    )


@kernel
def _keep(wires: Rows, at: int, present: Figures, piece: Vector) -> None:
    """Note which pieces a wire is at."""
    store(wires, at + PRESENT + RATE, present[RATE])
    store(wires, at + PRESENT + WIRE_TIME, present[WIRE_TIME])
    store(wires, at + PRESENT + LATENCY, present[LATENCY])
    store(wires, at + PRESENT + UNTIL, present[UNTIL])
    store(wires, at + PIECE, piece)


@kernel
def _carry_each(
    wires: Rows, pieces: Rows, own: Rows, most_pieces: int, rules: LaneRules, wire: int,
    rare: int, ready: Vector, left: Vector,
) -> Vector:  # fmt: skip
    """Send the messages of some lanes one by one, whatever happens on their way."""
    store(own, SCRATCH, left)
    store(own, MORE_SCRATCH, ready)
    while rare != 0:
        lane = first_lane(rare)
        rare &= rare - 1
        place = (wires, pieces, own, most_pieces, rules, wire, lane)
        own[SCRATCH, lane] = _carry(place, own[MORE_SCRATCH, lane])
    return load(own, SCRATCH)


@kernel
def _carry(place: Place, ready_s: float) -> float:
    """Send the message of one lane; returns when it has left, ``inf`` where it never does. [s]"""
    wires, _, own, _, _, wire, lane = place
    at = wire * WIRE_ROWS
    if own[STATUS, lane] != OK:
        return math.inf
    num_bytes = wires[at + NUM_BYTES, lane]
    left_s = serialisation_end_s(ready_s, num_bytes, _rate_at, place)[0]
    rate, latency_s, until_s, piece = _piece_at(place, left_s)
    if left_s == math.inf and own[STATUS, lane] == OK:
        own[STATUS, lane] = STARVED
    if own[STATUS, lane] != OK:
        return math.inf
    wires[at + PRESENT + RATE, lane] = rate
    wires[at + PRESENT + WIRE_TIME, lane] = num_bytes / rate if rate > 0.0 else math.inf
    wires[at + PRESENT + LATENCY, lane] = latency_s
    wires[at + PRESENT + UNTIL, lane] = until_s
    wires[at + PIECE, lane] = piece
    return left_s


@scalar
def _rate_at(place: Place, time_s: float) -> tuple[float, float]:
    """Rate of a message alone [bytes/s], and until when it holds [s]."""
    rate, _, until_s, _ = _piece_at(place, time_s)
    return rate, until_s


@kernel
def _piece_at(place: Place, time_s: float) -> tuple[float, float, float, int]:
    """Rate, latency, end and number of the piece that rules at a time."""
    wires, pieces, own, most_pieces, rules, wire, lane = place
    at = wire * WIRE_ROWS
    link = int(wires[at + LINK, lane])
    if rules.weather == UNIFORM and link >= 0:
        segment = segment_ruling(own[START, lane], time_s, rules.interval_s)
        bandwidth_factor, latency_factor = uniform_factors(
            whole_number_in(own[SEED, lane]),
            link,
            segment,
            rules.bandwidth_fluctuation,
            rules.latency_jitter,
        )
        rate = goodput(
            wires[at + BANDWIDTH, lane] * bandwidth_factor,
            wires[at + ROUND_TRIP, lane] * latency_factor,
            rules.window_bytes,
        )
        latency_s = wires[at + BASE_LATENCY, lane] * latency_factor
        until_s = (segment + 1) * rules.interval_s - own[START, lane]
        return rate, latency_s, until_s, segment - int(own[FIRST_SEGMENT, lane])
    num_pieces = int(wires[at + NUM_PIECES, 0])
    for piece in range(num_pieces):
        row = (wire * most_pieces + piece) * PIECE_ROWS
        until_s = pieces[row + UNTIL, lane]
        if time_s < until_s or until_s == math.inf:
            return pieces[row + RATE, lane], pieces[row + LATENCY, lane], until_s, piece
    own[STATUS, lane] = BEYOND
    return 0.0, 0.0, math.inf, num_pieces
