"""Arrays for many iterations side by side, see `des.compiled.kernels.lanes`."""

import math

import numpy as np

from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import (
    LANE_ROWS,
    PIECE_ROWS,
    SEED,
    STAGE_ROWS,
    WIRE_ROWS,
    Lanes,
    Record,
)

_CACHE_LINE_BYTES = 64


def new_lanes(num_stages: int, num_slots: int, num_pieces: int = 32) -> Lanes:
    """Allocate tables of at most ``num_stages`` stages and ``num_slots`` arrival slots.

    Parameters
    ----------
    num_pieces
        Most pieces of a wire's course that are worked out for all lanes together. What comes later
        takes more time, lane by lane; given pieces must not be more.
    """
    num_wires = max(1, 2 * (num_stages - 1))
    own = aligned_zeros(LANE_ROWS, LANES)
    return Lanes(
        stages=aligned_zeros(num_stages, STAGE_ROWS, LANES),
        wires=aligned_zeros(num_wires, WIRE_ROWS, LANES),
        arrivals=aligned_zeros(num_slots, LANES),
        pieces=aligned_zeros(num_wires, num_pieces, PIECE_ROWS, LANES),
        own=own,
        seed=own[SEED].view(np.int64),
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
