"""Arrays for many iterations side by side, see `des.compiled.kernels.lanes`."""

import math

import numpy as np

from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import STAGE_ROWS, WIRE_ROWS, Lanes, Record

_CACHE_LINE_BYTES = 64


def new_lanes(num_stages: int, num_slots: int) -> Lanes:
    """Allocate tables of at most ``num_stages`` stages and ``num_slots`` arrival slots."""
    return Lanes(
        stages=aligned_zeros(num_stages, STAGE_ROWS, LANES),
        wires=aligned_zeros(max(1, 2 * (num_stages - 1)), WIRE_ROWS, LANES),
        arrivals=aligned_zeros(num_slots, LANES),
        makespan_s=aligned_zeros(1, LANES),
    )


def no_record() -> Record:
    """Make no room: nothing is written down."""
    return Record(spans=aligned_zeros(0, 2, LANES), transfers=aligned_zeros(0, 3, LANES))


def aligned_zeros(*shape: int) -> np.ndarray:
    """Make an array whose rows of lanes each begin a cache line: others take two to read."""
    count = math.prod(shape)
    spare = _CACHE_LINE_BYTES // 8
    room = np.zeros(count + spare)
    first = -room.ctypes.data % _CACHE_LINE_BYTES // 8
    return room[first : first + count].reshape(shape)
