"""Links shared equally at any time, in a compiled simulation, see `des.engine.fair_wire`.

The messages of a wire are a list in the order in which they leave, linked through the parcels.
"""

import math

from des.base.jit import inner_kernel
from des.base.scalar import scalar
from des.compiled.kernels.arrivals import arrive
from des.compiled.kernels.events import MEDIUM, MESSAGE, push
from des.compiled.kernels.gates import fill
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.offers import refresh_offer, starve
from des.compiled.kernels.records import ProgramRun
from des.compiled.kernels.wires import record
from des.costs.start_up import start_up_s


@inner_kernel
def enqueue_message(run: ProgramRun, link: int, message: int, now_s: float) -> None:
    """Hand a message to a wire: first its overhead passes, if there is any."""
    own, parcel = at(run.link_states, link), at(run.parcels, message)
    parcel.start_s = now_s
    num_bytes = at(run.flows, at(run.flow_of, message).flow).num_bytes
    overhead_s: float = run.header.message_overhead_s
    if run.header.has_start_up:
        overhead_s += start_up_s(at(run.start_ups, link), own.num_bytes, num_bytes)
    if own.num_present == 0:
        own.busy_since_s = now_s
    own.num_present += 1
    own.num_bytes += num_bytes
    own.num_messages += 1
    if overhead_s > 0.0:
        parcel.has_come = 1
        push(run, now_s + overhead_s, MESSAGE + message)
    else:
        join(run, link, message, now_s)


@inner_kernel
def join(run: ProgramRun, link: int, message: int, now_s: float) -> None:
    """Begin to send a message that shares the link with others."""
    let_go(run, link, now_s)
    own, parcel = at(run.link_states, link), at(run.parcels, message)
    parcel.has_come = 0
    if own.num_sending == 0:
        own.level_bytes = own.rate_bytes_per_s = 0.0
        own.since_s = now_s
    num_bytes = at(run.flows, at(run.flow_of, message).flow).num_bytes
    parcel.level_bytes = _level_at(run, link, now_s) + num_bytes
    _line_up(run, link, message)
    own.num_sending += 1
    own.has_joiner = 1
    _request(run, at(run.links, link).medium, now_s)


@inner_kernel
def let_go(run: ProgramRun, link: int, now_s: float) -> None:
    """Let messages leave whose last byte has, unless one has joined since the last division."""
    own = at(run.link_states, link)
    while own.num_sending > 0 and own.has_joiner == 0 and _next_end_s(run, link) <= now_s:
        message = own.head
        parcel = at(run.parcels, message)
        own.head = parcel.following
        own.num_sending -= 1
        own.level_bytes = parcel.level_bytes
        own.since_s = now_s
        own.num_present -= 1
        if own.num_present == 0:
            own.busy_s += now_s - own.busy_since_s
        refresh_offer(run, link, now_s)
        arrival_s = now_s + own.latency_s
        record(run, message, link, parcel.start_s, now_s, arrival_s)
        parcel.hop += 1
        if parcel.hop == at(run.flows, at(run.flow_of, message).flow).num_hops:
            arrive(run, message, arrival_s)
        else:
            push(run, arrival_s, MESSAGE + message)


@inner_kernel
def divide(run: ProgramRun, medium: int, now_s: float) -> None:
    """Let go what has left, set the rates of all wires of a medium, ask for the next division."""
    if run.header.num_gates:
        _divide_all(run, now_s)
        return
    at(run.medium_states, medium).due_s = math.inf
    first, second = at(run.media, medium).first_link, at(run.media, medium).second_link
    let_go(run, first, now_s)
    if second >= 0:
        let_go(run, second, now_s)
    largest, num_others, largest_of_others = _largest_part(run, first, now_s), 0, 0.0
    if second >= 0:
        num_others = at(run.link_states, second).num_sending
        largest_of_others = _largest_part(run, second, now_s)
    num_sending = at(run.link_states, first).num_sending
    part = equal_share(num_sending, largest, num_others, largest_of_others)
    until_s = _set_rate(run, first, _rate_of(run, first, part), now_s)
    if second >= 0:
        other_s = _set_rate(run, second, _rate_of(run, second, part), now_s)
        until_s = other_s if other_s < until_s else until_s
    if until_s < math.inf:
        _request(run, medium, until_s if until_s > now_s else now_s)


@inner_kernel
def _divide_all(run: ProgramRun, now_s: float) -> None:
    """Do the same for all links, which are one medium where links have gates in common."""
    at(run.medium_states, 0).due_s = math.inf
    for number in range(run.outcome.num_used):
        let_go(run, at(run.link_states, number).used, now_s)
    fill(run, now_s)
    until_s = math.inf
    for number in range(run.outcome.num_used):
        link = at(run.link_states, number).used
        rate = at(run.link_states, link).fair_bytes_per_s
        until_s = min(until_s, _set_rate(run, link, rate, now_s))
    if until_s < math.inf:
        _request(run, 0, until_s if until_s > now_s else now_s)


@scalar
def equal_share(num: int, largest: float, num_others: int, largest_of_others: float) -> float:
    """Part of a medium for each message that can use it, see `des.engine.fair_wire.equal_part`.

    There are two wires at most; one without a message counts for nothing.
    """
    if num == 0 or (num_others > 0 and largest_of_others < largest):
        num, largest, num_others, largest_of_others = num_others, largest_of_others, num, largest
    left, num_messages = 1.0, num + num_others
    if num > 0:
        part = left / num_messages
        if largest >= part:
            return part
        left -= num * largest
        num_messages -= num
    if num_others > 0:
        part = left / num_messages
        if largest_of_others >= part:
            return part
    return 1.0


@inner_kernel
def _largest_part(run: ProgramRun, link: int, now_s: float) -> float:
    """Rate that one message of a wire can use of the medium; 0 where there is none."""
    own = at(run.link_states, link)
    if own.num_sending == 0:
        return 0.0
    refresh_offer(run, link, now_s)
    if own.bandwidth_bytes_per_s == 0.0:
        return 0.0
    part: float = own.goodput_bytes_per_s / own.bandwidth_bytes_per_s
    return part


@inner_kernel
def _rate_of(run: ProgramRun, link: int, part: float) -> float:
    """Rate of a message that has a part of the medium at most."""
    own = at(run.link_states, link)
    rate: float = min(part * own.bandwidth_bytes_per_s, own.goodput_bytes_per_s)
    return rate


@inner_kernel
def _set_rate(run: ProgramRun, link: int, rate: float, now_s: float) -> float:
    """Give each message of a wire another rate; returns until when it holds at most. [s]"""
    own = at(run.link_states, link)
    if own.num_sending == 0:
        return math.inf
    if rate == 0.0 and own.until_s == math.inf:
        starve(run, link)
        return math.inf
    own.has_joiner = 0
    if rate != own.rate_bytes_per_s:
        own.level_bytes, own.since_s = _level_at(run, link, now_s), now_s
        own.rate_bytes_per_s = rate
    end_s = _next_end_s(run, link)
    until_s: float = own.until_s
    return min(end_s, until_s)


@inner_kernel
def _next_end_s(run: ProgramRun, link: int) -> float:
    """Time at which the next message will have left if the rate holds. [s]"""
    own = at(run.link_states, link)
    if own.rate_bytes_per_s == 0.0:
        return math.inf
    left_bytes = at(run.parcels, own.head).level_bytes - own.level_bytes
    end_s: float = own.since_s + left_bytes / own.rate_bytes_per_s
    return end_s


@inner_kernel
def _level_at(run: ProgramRun, link: int, time_s: float) -> float:
    own = at(run.link_states, link)
    level_bytes: float = own.level_bytes + own.rate_bytes_per_s * (time_s - own.since_s)
    return level_bytes


@inner_kernel
def _line_up(run: ProgramRun, link: int, message: int) -> None:
    """Put a message into the list by (level, number); mostly it goes to the end."""
    own, parcel = at(run.link_states, link), at(run.parcels, message)
    parcel.following = -1
    if own.num_sending == 0:
        own.head = own.tail = message
        return
    if _is_before(run, own.tail, message):
        at(run.parcels, own.tail).following = message
        own.tail = message
        return
    if _is_before(run, message, own.head):
        parcel.following = own.head
        own.head = message
        return
    ahead = own.head
    while _is_before(run, at(run.parcels, ahead).following, message):
        ahead = at(run.parcels, ahead).following
    parcel.following = at(run.parcels, ahead).following
    at(run.parcels, ahead).following = message


@inner_kernel
def _is_before(run: ProgramRun, message: int, other: int) -> bool:
    level_bytes = at(run.parcels, message).level_bytes
    other_bytes = at(run.parcels, other).level_bytes
    return level_bytes < other_bytes or (level_bytes == other_bytes and message < other)


@inner_kernel
def _request(run: ProgramRun, medium: int, time_s: float) -> None:
    """Ask for a division; of several times the earliest counts."""
    own = at(run.medium_states, medium)
    if time_s < own.due_s:
        own.due_s = time_s
        push(run, time_s, MEDIUM + medium)
