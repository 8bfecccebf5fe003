"""The clock and the rule of list scheduling, and the times that its orders take."""

import math

from des.base.jit import lean_kernel
from des.schedules.kernels.board import (
    FORWARD,
    GRADIENT,
    WEIGHT,
    Board,
    Flow,
    Real,
    Whole,
    drop_first,
    note_moment,
)

ALTERNATE = 2
"""Turn of a rule that prefers what was not last; `FORWARD` or `GRADIENT` always prefer that one."""

ROUNDING = 1.0 + 1e-9
"""Sums of the same terms in another order differ by less."""


@lean_kernel
def dispatch_rules(
    flow: Flow,
    board: Board,
    turns: Whole,
    hold_fractions: Real,
    gap_fractions: Real,
    limit_s: float,
    is_longest: bool,
    times_s: Real,
) -> None:
    """Simulate one rule after another, (N,) each, until it cannot be the best any more.

    ``times_s`` (N, 2) are the longest time of a device and the makespan; both are ``inf`` where the
    objective would exceed the limit, or the least time of an earlier rule. [s]
    """
    for rule in range(turns.size):
        done = _dispatch(
            flow,
            board,
            turns[rule],
            hold_fractions[rule],
            gap_fractions[rule],
            limit_s * ROUNDING,
            is_longest,
        )
        times_s[rule, 0] = times_s[rule, 1] = math.inf
        if done:
            times_s[rule, 0] = times_s[rule, 1] = 0.0
            for device in range(flow.memory_bytes.size):
                own_s = board.end_s[device] - board.begin_s[device]
                times_s[rule, 0] = max(times_s[rule, 0], own_s)
                times_s[rule, 1] = max(times_s[rule, 1], board.end_s[device])
        limit_s = min(limit_s, times_s[rule, 0 if is_longest else 1])


@lean_kernel
def _dispatch(
    flow: Flow,
    board: Board,
    turn: int,
    hold_fraction: float,
    gap_fraction: float,
    limit_s: float,
    is_longest: bool,
) -> bool:
    """Run the clock forward until everything is done; False if nothing can go on.

    It is given up, too, once the makespan must exceed a limit; or the longest time of a device.
    """
    _begin(flow, board)
    num_left = 3 * flow.device.size * flow.num_microbatches
    while num_left > 0 and board.num_moments[0] > 0:
        # A waiting device waits for an input on its way, whose arrival is among the moments.
        now_s, device = board.moment_s[0], board.moment_of[0]
        drop_first(board)
        if now_s < board.free_s[device]:
            continue
        kind, stage = _choose(flow, board, device, now_s, turn, hold_fraction, gap_fraction)
        if kind >= 0:
            _do(flow, board, device, kind, stage, now_s)
            note_moment(board, board.free_s[device], device)
            num_left -= 1
            if _least_s(flow, board, device, is_longest) > limit_s:
                return False
    return bool(num_left == 0)


@lean_kernel
def _least_s(flow: Flow, board: Board, device: int, is_longest: bool) -> float:
    """Makespan at least, or time of a device, from what it has done and has left."""
    least_s: float = board.end_s[device] + board.left_s[device]
    if is_longest:
        least_s -= board.begin_s[device]
    elif board.num_gradients[device] > 0:
        least_s = max(least_s, least_s - board.left_weight_s[device] + flow.tail_s[device])
    return least_s


@lean_kernel
def _begin(flow: Flow, board: Board) -> None:
    for device in range(flow.memory_bytes.size):
        board.num_done[device] = board.taken[device] = board.put[device] = 0
        board.free_s[device] = board.held_bytes[device] = board.end_s[device] = 0.0
        board.last[device] = GRADIENT
        board.moment_s[device], board.moment_of[device] = 0.0, device
        board.left_s[device] = board.left_weight_s[device] = board.num_gradients[device] = 0
        for place in range(flow.first[device], flow.first[device + 1]):
            stage = flow.stages[place]
            board.num_gradients[device] += flow.num_microbatches
            board.left_weight_s[device] += flow.num_microbatches * flow.passes_s[WEIGHT, stage]
            for kind in range(3):
                board.left_s[device] += flow.num_microbatches * flow.passes_s[kind, stage]
    board.num_moments[0] = flow.memory_bytes.size
    for wire in range(board.wire_free_s.size):
        board.wire_free_s[wire] = board.own_wire_free_s[wire] = 0.0
    for stage in range(flow.device.size):
        for kind in range(2):
            board.begun[kind, stage] = board.known[kind, stage] = 0
    board.known[FORWARD, 0] = flow.num_microbatches
    for microbatch in range(flow.num_microbatches):
        board.arrival_s[FORWARD, 0, microbatch] = 0.0
        board.own_arrival_s[FORWARD, 0, microbatch] = 0.0


@lean_kernel
def _choose(
    flow: Flow,
    board: Board,
    device: int,
    now_s: float,
    turn: int,
    hold_fraction: float,
    gap_fraction: float,
) -> tuple[int, int]:
    """Kind and stage of the next operation of a free device, by its rule; -1 where it waits."""
    soon_s = now_s * ROUNDING
    forward_s, forward = _first(flow, board, FORWARD, device, now_s)
    gradient_s, gradient = _first(flow, board, GRADIENT, device, now_s)
    if forward_s <= soon_s and gradient_s <= soon_s:
        preferred = 1 - board.last[device] if turn == ALTERNATE else turn
        return (FORWARD, forward) if preferred == FORWARD else (GRADIENT, gradient)
    if gradient_s <= soon_s:
        return GRADIENT, gradient
    next_s = min(forward_s, gradient_s)
    if forward_s <= soon_s:
        hold_s = hold_fraction * flow.passes_s[FORWARD, forward]
        if gradient_s * ROUNDING >= now_s + hold_s:
            return FORWARD, forward
        next_s = gradient_s
    if board.taken[device] < board.put[device]:
        filler = board.waiting[device, board.taken[device]] // flow.num_microbatches
        gap_s = gap_fraction * flow.passes_s[WEIGHT, filler]
        if next_s * ROUNDING >= now_s + gap_s:
            return WEIGHT, filler
    return -1, -1


@lean_kernel
def _first(flow: Flow, board: Board, kind: int, device: int, now_s: float) -> tuple[float, int]:
    """Pass of a kind that can start first, and when; infinity where none is known to."""
    first_s, first = math.inf, -1
    begin, end = flow.first[device], flow.first[device + 1]
    for place in range(begin, end):
        stage = flow.stages[begin + end - 1 - place if kind == FORWARD else place]
        microbatch = board.begun[kind, stage]
        if microbatch == board.known[kind, stage]:
            continue
        needed_bytes = board.held_bytes[device] + flow.needed_bytes[kind, stage]
        start_s = max(now_s, board.arrival_s[kind, stage, microbatch])
        if start_s < first_s and needed_bytes <= flow.memory_bytes[device]:
            first_s, first = start_s, stage
    return first_s, first


@lean_kernel
def _do(flow: Flow, board: Board, device: int, kind: int, stage: int, now_s: float) -> None:
    """Note that it is done, what it holds or frees, and when its output arrives."""
    count, num_stages = flow.num_microbatches, flow.device.size
    start_s = board.end_s[device]
    if kind == WEIGHT:
        microbatch = board.waiting[device, board.taken[device]] % count
        board.taken[device] += 1
    else:
        microbatch = board.begun[kind, stage]
        board.begun[kind, stage] += 1
        board.last[device] = kind
        start_s = max(start_s, board.own_arrival_s[kind, stage, microbatch])
    if board.num_done[device] == 0:
        board.begin_s[device] = start_s
    board.end_s[device] = start_s + flow.passes_s[kind, stage]
    board.free_s[device] = now_s + flow.passes_s[kind, stage]
    board.order[device, board.num_done[device]] = (kind * num_stages + stage) * count + microbatch
    board.num_done[device] += 1
    board.held_bytes[device] += flow.change_bytes[kind, stage]
    board.left_s[device] -= flow.passes_s[kind, stage]
    if kind == WEIGHT:
        board.left_weight_s[device] -= flow.passes_s[kind, stage]
        return
    if kind == GRADIENT:
        board.num_gradients[device] -= 1
        board.waiting[device, board.put[device]] = stage * count + microbatch
        board.put[device] += 1
    elif stage == num_stages - 1:
        _arrive(board, GRADIENT, stage, board.free_s[device], board.end_s[device])
    if flow.receiver[kind, stage] >= 0:
        _send(flow, board, device, kind, stage)


@lean_kernel
def _send(flow: Flow, board: Board, device: int, kind: int, stage: int) -> None:
    """Send what a device has just made to the stage that needs it."""
    arrival_s, own_s = board.free_s[device], board.end_s[device]
    wire, transfer_s = flow.wire[kind, stage], flow.transfer_s[kind, stage]
    if wire >= 0:
        board.wire_free_s[wire] = max(arrival_s, board.wire_free_s[wire]) + transfer_s
        arrival_s = board.wire_free_s[wire] + flow.latency_s[kind, stage]
        board.own_wire_free_s[wire] = max(own_s, board.own_wire_free_s[wire]) + transfer_s
        own_s = board.own_wire_free_s[wire] + flow.latency_s[kind, stage]
    receiver = flow.receiver[kind, stage]
    _arrive(board, kind, receiver, arrival_s, own_s)
    note_moment(board, arrival_s, flow.device[receiver])


@lean_kernel
def _arrive(board: Board, kind: int, stage: int, arrival_s: float, own_s: float) -> None:
    """Note when the next input of a stage arrives."""
    microbatch = board.known[kind, stage]
    board.arrival_s[kind, stage, microbatch] = arrival_s
    board.own_arrival_s[kind, stage, microbatch] = own_s
    board.known[kind, stage] += 1


@lean_kernel
def follow(flow: Flow, board: Board, order: Whole) -> bool:
    """Work out the times of orders (P, operations) that end with -1; False if they never end.

    Operations are numbered as in `Board`.
    """
    count, num_stages = flow.num_microbatches, flow.device.size
    _begin(flow, board)
    is_on = True
    while is_on:
        is_on = False
        for device in range(order.shape[0]):
            while board.num_done[device] < order.shape[1]:
                number = order[device, board.num_done[device]]
                if number < 0:
                    break
                kind, stage = number // count // num_stages, number // count % num_stages
                if kind != WEIGHT and board.begun[kind, stage] == board.known[kind, stage]:
                    break
                _do(flow, board, device, kind, stage, 0.0)
                is_on = True
    num_done = 0
    for device in range(order.shape[0]):
        num_done += board.num_done[device]
    return bool(num_done == 3 * num_stages * count)
