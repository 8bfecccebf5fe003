"""State of many iterations side by side: arrays whose last axis are the lanes.

A lane is one environment: a world of its own, on which the same table of operations runs. What a
run does not write stays as it is, so what does not change need be filled in but once. All lanes
must hold a world, also those not requested: a lane may be there twice.
"""

from typing import NamedTuple

import numpy as np

STAGE_BUSY, STAGE_FREE = 4, 5
"""Rows of a stage after the durations of its passes F, B, D and W: how long it has computed; when
it ended its last operation. [s]"""

STAGE_ROWS = 6

WIRE_TIME, LATENCY, OVERHEAD = range(3)
"""Rows of a wire that are given: how long a message takes it, latency and overhead of a message.
[s]"""

WIRE_BUSY, WIRE_FREE, LAST_ARRIVAL = range(3, 6)
"""Rows of a wire that sum up its messages: how long they took, overheads included; when the last
one left; when it arrived. [s]"""

WIRE_ROWS = 6


class Lanes(NamedTuple):
    """Arrays of one thread, see `des.compiled.lanes.new_lanes`; there may be more than is used.

    ``stages`` (stages, STAGE_ROWS, LANES), ``wires`` (wires, WIRE_ROWS, LANES), ``arrivals``
    (slots, LANES), ``makespan_s`` (1, LANES).
    """

    stages: np.ndarray
    wires: np.ndarray
    arrivals: np.ndarray
    makespan_s: np.ndarray


class Record(NamedTuple):
    """Records of a run by row of its table of operations; empty if there is no room.

    ``spans`` (rows, 2, LANES) are starts and ends, ``transfers`` (rows, 3, LANES) the times when
    a message takes the wire, has left and arrives. [s]
    """

    spans: np.ndarray
    transfers: np.ndarray
