"""Links that serve in turn, or each message by itself, in a compiled simulation, see
`des.engine.wire`.
"""

import math

from des.base.arithmetic import serialisation_end_s
from des.base.jit import inner_kernel
from des.compiled.kernels.gates import pass_gates
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.offers import goodput_at, refresh_offer, starve
from des.compiled.kernels.program import STEADY
from des.compiled.kernels.records import ProgramRun
from des.compiled.kernels.windows import window_delay_s
from des.costs.start_up import rested_bytes, start_up_s


@inner_kernel
def carry(run: ProgramRun, link: int, message: int, num_bytes: float, ready_s: float) -> float:
    """Send a message that is ready; returns when it has arrived, inf where it never does. [s]"""
    header, own = run.header, at(run.link_states, link)
    medium = at(run.medium_states, at(run.links, link).medium)
    start_s = medium.free_s if medium.free_s > ready_s else ready_s
    end_s, behind_s = start_s + header.message_overhead_s, 0.0
    if header.has_start_up and header.has_windows:
        delay_s = window_delay_s(run, link, start_s, num_bytes)
        end_s = start_s + (header.message_overhead_s + delay_s)
    elif header.has_start_up:
        start_up = at(run.start_ups, link)
        if own.known_bytes > 0.0 and start_s - own.left_s >= start_up.round_s:
            own.known_bytes = rested_bytes(start_up, own.began_bytes, own.known_bytes)
            own.began_bytes = own.known_bytes
        delay_s = start_up_s(start_up, own.known_bytes, num_bytes)
        own.known_bytes += num_bytes
        if start_up.is_reused:
            end_s = start_s + (header.message_overhead_s + delay_s)
        else:
            behind_s = delay_s
    if header.num_gates and not header.is_unshared:
        end_s = pass_gates(run, link, end_s, num_bytes, ready_s)
        if end_s == math.inf:
            starve(run, link)
            return math.inf
        refresh_offer(run, link, end_s)
    elif header.weather == STEADY:
        end_s += num_bytes / own.goodput_bytes_per_s
    else:
        end_s = serialisation_end_s(end_s, num_bytes, goodput_at, (run, link))[0]
        if end_s == math.inf:
            starve(run, link)
            return math.inf
        refresh_offer(run, link, end_s)
    arrival_s: float = end_s + (own.latency_s + behind_s)
    if not header.is_unshared:  # else no message waits for the medium, and it stays free
        arrival_s = max(arrival_s, own.last_arrival_s)
        medium.free_s, own.last_arrival_s = end_s, arrival_s
    own.left_s = end_s
    own.busy_s += end_s - start_s
    own.num_bytes += num_bytes
    own.num_messages += 1
    record(run, message, link, start_s, end_s, arrival_s)
    return arrival_s


@inner_kernel
def record(
    run: ProgramRun,
    message: int,
    link: int,
    start_s: float,
    end_s: float,
    arrival_s: float,
) -> None:
    """Write down that a message has left."""
    if not run.header.is_recorded:
        return
    number = run.outcome.num_transfers
    run.outcome.num_transfers = number + 1
    transfer = at(run.transfers, number)
    transfer.message, transfer.link = message, link
    transfer.start_s, transfer.end_s, transfer.arrival_s = start_s, end_s, arrival_s
