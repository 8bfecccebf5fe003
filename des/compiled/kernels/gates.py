"""Rates that several links share, in a compiled simulation: see `des.engine.gate`, first come,
first served, and `des.engine.filling`, fair.
"""

import math

from des.base.arithmetic import serialisation_end_s
from des.base.jit import inner_kernel
from des.base.scalar import scalar
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.offers import give_up, goodput_at, refresh_offer
from des.compiled.kernels.program import FULL, LINKS
from des.compiled.kernels.records import ProgramRun


@inner_kernel
def begin_gates(run: ProgramRun) -> None:
    """Let nothing be taken of any gate."""
    for gate in range(run.header.num_gates):
        at(run.gate_states, gate).num_pieces = 1
        piece = at(run.gate_pieces, gate * run.outcome.gate_room)
        piece.since_s, piece.left_bytes_per_s = 0.0, at(run.gates, gate).rate_bytes_per_s
    run.outcome.num_used = 0
    if run.header.num_gates and run.header.is_fair:
        _list_used_links(run)


@inner_kernel
def _list_used_links(run: ProgramRun) -> None:
    """Note which links any message uses: fair rates are found among those."""
    for link in range(run.header.num_links):
        at(run.link_states, link).is_used = 0
    for message in range(run.header.num_messages):
        flow = at(run.flows, at(run.flow_of, message).flow)
        if flow.way == LINKS:
            for hop in range(flow.first_hop, flow.first_hop + flow.num_hops):
                at(run.link_states, at(run.hops, hop).link).is_used = 1
    for link in range(run.header.num_links):
        if at(run.link_states, link).is_used:
            at(run.link_states, run.outcome.num_used).used = link
            run.outcome.num_used += 1


@inner_kernel
def pass_gates(
    run: ProgramRun, link: int, start_s: float, num_bytes: float, ready_s: float
) -> float:
    """Time when a message has left through a link and its gates, whose rates it then takes. [s]

    ``inf`` where it never does. Pieces that ended before it was ready are dropped.
    """
    first, end = at(run.links, link).first_gate, at(run.links, link).end_gate
    for number in range(first, end):
        _forget(run, at(run.link_gates, number).gate, ready_s)
    end_s: float = serialisation_end_s(start_s, num_bytes, least_at, (run, link))[0]
    time_s = start_s
    while time_s < end_s < math.inf:
        rate, until_s = least_at((run, link), time_s)
        until_s = min(until_s, end_s)
        if rate > 0.0:
            for number in range(first, end):
                _take(run, at(run.link_gates, number).gate, time_s, until_s, rate)
        time_s = until_s
    return end_s


@scalar
def least_at(where: tuple[ProgramRun, int], time_s: float) -> tuple[float, float]:
    """Rate that a link and its gates have left at a time [bytes/s], and until when it holds [s]."""
    run, link = where
    rate, until_s = goodput_at(where, time_s)
    for number in range(at(run.links, link).first_gate, at(run.links, link).end_gate):
        gate = at(run.link_gates, number).gate
        found = _piece_at(run, gate, time_s)
        first = gate * run.outcome.gate_room
        rate = min(rate, at(run.gate_pieces, first + found).left_bytes_per_s)
        if found + 1 < at(run.gate_states, gate).num_pieces:
            until_s = min(until_s, at(run.gate_pieces, first + found + 1).since_s)
    return rate, until_s


@inner_kernel
def fill(run: ProgramRun, now_s: float) -> None:
    """Find the max-min fair rate of a message on each link that sends, through all gates."""
    num_left = 0
    for number in range(run.outcome.num_used):
        link = at(run.link_states, number).used
        own = at(run.link_states, link)
        if own.num_sending:
            refresh_offer(run, link, now_s)
            own.fair_bytes_per_s = -1.0
            num_left += 1
    level = 0.0
    while num_left > 0:
        _sum_up(run)
        least = math.inf
        for number in range(run.outcome.num_used):
            link = at(run.link_states, number).used
            own = at(run.link_states, link)
            if own.num_sending and own.fair_bytes_per_s < 0.0:
                own.limit_bytes_per_s = _limit(run, link)
                least = min(least, own.limit_bytes_per_s)
        level = max(level, least)
        for number in range(run.outcome.num_used):
            link = at(run.link_states, number).used
            own = at(run.link_states, link)
            is_open = own.num_sending > 0 and own.fair_bytes_per_s < 0.0
            if is_open and own.limit_bytes_per_s <= level:
                own.fair_bytes_per_s = level
                num_left -= 1


@inner_kernel
def _sum_up(run: ProgramRun) -> None:
    """Count what links that have their rates leave of each gate, and the messages of the others."""
    for gate in range(run.header.num_gates):
        at(run.gate_states, gate).left_bytes_per_s = at(run.gates, gate).rate_bytes_per_s
        at(run.gate_states, gate).num_open = 0
    for number in range(run.outcome.num_used):
        link = at(run.link_states, number).used
        own = at(run.link_states, link)
        if own.num_sending == 0:
            continue
        for each in range(at(run.links, link).first_gate, at(run.links, link).end_gate):
            gate = at(run.gate_states, at(run.link_gates, each).gate)
            if own.fair_bytes_per_s < 0.0:
                gate.num_open += own.num_sending
            else:
                gate.left_bytes_per_s -= own.num_sending * own.fair_bytes_per_s


@inner_kernel
def _limit(run: ProgramRun, link: int) -> float:
    """Rate at which a message of a link meets a limit if all others rise with it."""
    own = at(run.link_states, link)
    limit: float = min(own.goodput_bytes_per_s, own.bandwidth_bytes_per_s / own.num_sending)
    for number in range(at(run.links, link).first_gate, at(run.links, link).end_gate):
        gate = at(run.gate_states, at(run.link_gates, number).gate)
        limit = min(limit, gate.left_bytes_per_s / gate.num_open)
    return limit


@inner_kernel
def _piece_at(run: ProgramRun, gate: int, time_s: float) -> int:
    """Number of the piece that holds a time, among those of a gate."""
    first, low = gate * run.outcome.gate_room, 0
    high = at(run.gate_states, gate).num_pieces
    while high - low > 1:
        middle = (low + high) >> 1
        if at(run.gate_pieces, first + middle).since_s <= time_s:
            low = middle
        else:
            high = middle
    return low


@inner_kernel
def _forget(run: ProgramRun, gate: int, time_s: float) -> None:
    """Drop the pieces that end by a time."""
    past = _piece_at(run, gate, time_s)
    if past > 0:
        _shift(run, gate, past, -past)


@inner_kernel
def _take(run: ProgramRun, gate: int, start_s: float, end_s: float, rate: float) -> None:
    """Use a rate for some time."""
    first, end = _cut(run, gate, start_s), _cut(run, gate, end_s)
    pieces = gate * run.outcome.gate_room
    for piece in range(first, end):
        at(run.gate_pieces, pieces + piece).left_bytes_per_s -= rate
    _join(run, gate, end)
    _join(run, gate, first)


@inner_kernel
def _cut(run: ProgramRun, gate: int, time_s: float) -> int:
    """Let a piece begin at a time; returns its number."""
    found, pieces = _piece_at(run, gate, time_s), gate * run.outcome.gate_room
    if at(run.gate_pieces, pieces + found).since_s == time_s:
        return found
    if at(run.gate_states, gate).num_pieces == run.outcome.gate_room:
        give_up(run, FULL, -1, time_s)
        return found
    _shift(run, gate, found + 1, 1)
    new = at(run.gate_pieces, pieces + found + 1)
    new.since_s = time_s
    new.left_bytes_per_s = at(run.gate_pieces, pieces + found).left_bytes_per_s
    return found + 1


@inner_kernel
def _join(run: ProgramRun, gate: int, piece: int) -> None:
    """Make one of a piece and the one before where equal rates are left."""
    if piece == 0:
        return
    own = at(run.gate_pieces, gate * run.outcome.gate_room + piece)
    before = at(run.gate_pieces, gate * run.outcome.gate_room + piece - 1)
    if own.left_bytes_per_s == before.left_bytes_per_s:
        _shift(run, gate, piece + 1, -1)


@inner_kernel
def _shift(run: ProgramRun, gate: int, first: int, by: int) -> None:
    """Move all pieces from one on."""
    own, pieces = at(run.gate_states, gate), gate * run.outcome.gate_room
    count = own.num_pieces - first
    for step in range(count):
        number = first + (step if by < 0 else count - 1 - step)
        source = at(run.gate_pieces, pieces + number)
        target = at(run.gate_pieces, pieces + number + by)
        target.since_s, target.left_bytes_per_s = source.since_s, source.left_bytes_per_s
    own.num_pieces += by
