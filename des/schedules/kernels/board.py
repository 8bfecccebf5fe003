"""Layout of a pipeline and of a schedule in the making, for compiled code; a heap of moments.

Stages S, devices P, M microbatches. Kinds of passes are numbers: `FORWARD`, `GRADIENT`, `WEIGHT`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from des.base.jit import lean_kernel

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]

FORWARD, GRADIENT, WEIGHT = 0, 1, 2


class Flow(NamedTuple):
    """A pipeline as arrays.

    Stages of device ``d`` are ``stages[first[d]]`` to those of the next, ascending. ``passes_s``
    (3, S) are times of passes; outputs of passes of a kind (2, S) go to ``receiver``, -1 for none,
    over ``wire``, -1 on the device itself, which they take for ``transfer_s`` and leave for
    ``latency_s``. ``needed_bytes`` (2, S) must be left where a pass starts, ``change_bytes`` (3, S)
    is what it holds or frees; ``memory_bytes`` (P,). A gradient that a device makes takes at least
    ``tail_s`` (P,) to the first stage and through it.
    """

    num_microbatches: int
    device: Whole
    first: Whole
    stages: Whole
    passes_s: Real
    receiver: Whole
    wire: Whole
    transfer_s: Real
    latency_s: Real
    needed_bytes: Real
    change_bytes: Real
    memory_bytes: Real
    tail_s: Real


class Board(NamedTuple):
    """A schedule in the making.

    ``order`` (P, operations) are numbers ``(kind S + stage) M + microbatch``, ``num_done`` (P,) how
    many. Of stages: passes begun of a kind ``begun``, and of inputs known ``known``, (2, S), which
    come at ``arrival_s`` (2, S, M). Of devices (P,): ``free_s``, ``held_bytes``, the kind ``last``;
    weight gradients ``waiting`` (P, S M) from ``taken`` (P,) to ``put`` (P,); work ``left_s``, that
    on weight gradients of it ``left_weight_s``, and input gradients ``num_gradients`` still to be
    made. ``wire_free_s`` is of wires.

    ``own_...`` are as early as can be in the orders found, see `des.schedules.recurrence`, with
    ``begin_s`` and ``end_s`` (P,). ``moment_s`` and ``moment_of`` are a heap of times of devices.
    """

    order: Whole
    num_done: Whole
    begun: Whole
    known: Whole
    arrival_s: Real
    free_s: Real
    held_bytes: Real
    last: Whole
    waiting: Whole
    taken: Whole
    put: Whole
    left_s: Real
    left_weight_s: Real
    num_gradients: Whole
    wire_free_s: Real
    own_arrival_s: Real
    own_wire_free_s: Real
    begin_s: Real
    end_s: Real
    moment_s: Real
    moment_of: Whole
    num_moments: Whole


def new_board(flow: Flow) -> Board:
    """Make room for any schedule of a pipeline."""
    num_stages, num_devices, count = len(flow.device), len(flow.memory_bytes), flow.num_microbatches
    num_passes, num_wires = num_stages * count, int(flow.wire.max()) + 1

    def whole(*shape: int) -> Whole:
        return np.zeros(shape, dtype=np.int64)

    return Board(
        order=whole(num_devices, 3 * num_passes),
        num_done=whole(num_devices),
        begun=whole(2, num_stages),
        known=whole(2, num_stages),
        arrival_s=np.zeros((2, num_stages, count)),
        free_s=np.zeros(num_devices),
        held_bytes=np.zeros(num_devices),
        last=whole(num_devices),
        waiting=whole(num_devices, num_passes),
        taken=whole(num_devices),
        put=whole(num_devices),
        left_s=np.zeros(num_devices),
        left_weight_s=np.zeros(num_devices),
        num_gradients=whole(num_devices),
        wire_free_s=np.zeros(num_wires),
        own_arrival_s=np.zeros((2, num_stages, count)),
        own_wire_free_s=np.zeros(num_wires),
        begin_s=np.zeros(num_devices),
        end_s=np.zeros(num_devices),
        moment_s=np.zeros(num_devices + 5 * num_passes),
        moment_of=whole(num_devices + 5 * num_passes),
        num_moments=whole(1),
    )


@lean_kernel
def note_moment(board: Board, moment_s: float, device: int) -> None:
    """Put a moment on the heap."""
    at = board.num_moments[0]
    board.num_moments[0] += 1
    while at > 0:
        above = (at - 1) >> 1
        if not _is_before(moment_s, device, board.moment_s[above], board.moment_of[above]):
            break
        board.moment_s[at], board.moment_of[at] = board.moment_s[above], board.moment_of[above]
        at = above
    board.moment_s[at], board.moment_of[at] = moment_s, device


@lean_kernel
def drop_first(board: Board) -> None:
    """Take the first moment off the heap."""
    board.num_moments[0] -= 1
    size = board.num_moments[0]
    moment_s, device, at = board.moment_s[size], board.moment_of[size], 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _is_before(
            board.moment_s[below + 1],
            board.moment_of[below + 1],
            board.moment_s[below],
            board.moment_of[below],
        ):
            below += 1
        if not _is_before(board.moment_s[below], board.moment_of[below], moment_s, device):
            break
        board.moment_s[at], board.moment_of[at] = board.moment_s[below], board.moment_of[below]
        at = below
    board.moment_s[at], board.moment_of[at] = moment_s, device


@lean_kernel
def _is_before(moment_s: float, device: int, other_s: float, other: int) -> bool:
    return moment_s < other_s or (moment_s == other_s and device < other)
