"""State of many iterations side by side: arrays whose last axis are the lanes.

A lane is one environment: a world of its own, on which the same table of operations runs. What a
run does not write stays as it is, so what does not change need be filled in but once. All lanes
must hold a world, also those not requested: a lane may be there twice.
"""

from typing import NamedTuple

import numpy as np

STAGE_BUSY, STAGE_FREE = 4, 5
"""Rows of a stage behind the durations of its passes F, B, D and W: how long it has computed; when
it ended its last operation. [s]"""

STAGE_ROWS = 6

BANDWIDTH, BASE_LATENCY, ROUND_TRIP, NUM_BYTES, OVERHEAD, LINK = range(6)
"""Rows of a wire that are given: bandwidth [bytes/s] and latency [s] at factors of 1, latency there
and back for the TCP window [s], bytes of a message, overhead of a message [s], and the position of
the link among those of the world, by which its factors are drawn. -1 is a wire that stands still.
"""

WIRE_BUSY, WIRE_FREE, LAST_ARRIVAL = range(6, 9)
"""Rows of a wire that sum up its messages: how long they took, overheads included; when the last
one left; when it arrived. [s]"""

RATE, WIRE_TIME, LATENCY, UNTIL = range(4)
"""Rows of a piece of a wire's course: rate of a message alone [bytes/s], how long a message takes
at it, latency, and until when all that holds. [s]"""

PIECE_ROWS = 4

PRESENT = 9
"""First row of the present piece of a wire."""

PIECE, NUM_PIECES = 13, 14
"""Rows of a wire: number of the present piece; how many are known (in lane 0)."""

WIRE_ROWS = 15

START, FIRST_SEGMENT, MAKESPAN, STATUS, SEED, SCRATCH, MORE_SCRATCH = range(7)
"""Rows of the lanes themselves: time of the course of the links at which the iteration begins [s],
segment that rules then, makespan [s], how it ended (`des.compiled.kernels.program`), seed of the
course."""

LANE_ROWS = 7


class Lanes(NamedTuple):
    """Arrays of one thread, see `des.compiled.lanes.new_lanes`; there may be more than is used.

    ``stages`` (stages, STAGE_ROWS, LANES), ``wires`` (wires, WIRE_ROWS, LANES), ``arrivals``
    (slots, LANES), ``pieces`` (wires, most pieces, PIECE_ROWS, LANES), ``own`` (LANE_ROWS, LANES).
    ``seed`` (LANES,) are the whole numbers in their row of ``own``.
    """

    stages: np.ndarray
    wires: np.ndarray
    arrivals: np.ndarray
    pieces: np.ndarray
    own: np.ndarray
    seed: np.ndarray


class LaneRules(NamedTuple):
    """Settings of all lanes: the law of the links, and the window of a message (``inf``: none).

    ``weather`` is one of `des.compiled.kernels.program`: links that stand still; factors drawn by
    seed every ``interval_s``; or pieces that are given, NUM_PIECES of each wire in every lane.
    """

    weather: int
    window_bytes: float
    interval_s: float
    bandwidth_fluctuation: float
    latency_jitter: float


class Record(NamedTuple):
    """Records of a run by row of its table of operations; empty if there is no room.

    ``spans`` (rows, 2, LANES) are starts and ends, ``transfers`` (rows, 3, LANES) the times when
    a message takes the wire, has left and arrives. [s]
    """

    spans: np.ndarray
    transfers: np.ndarray
