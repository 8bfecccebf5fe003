"""The queue of a compiled simulation: a binary heap of (time, rank), each of its own.

The first event stays in its place until the next one is put there or requested: handling an event
mostly queues another, which then needs one way down the heap instead of two.
"""

from des.base.jit import inner_kernel
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.records import ProgramRun

_SHIFT = 50
MESSAGE, WORKER, MEMBER, MEDIUM = (number << _SHIFT for number in range(4))
"""Ranks of number 0 of each class, see `des.clock`."""


@inner_kernel
def push(run: ProgramRun, time_s: float, rank: int) -> None:
    """Queue an event."""
    outcome = run.outcome
    if outcome.has_gap:
        outcome.has_gap = 0
        _place_down(run, time_s, rank)
        return
    place = outcome.num_queued
    outcome.num_queued = place + 1
    while place > 0:
        above = (place - 1) >> 1
        event = at(run.events, above)
        if event.time_s < time_s or (event.time_s == time_s and event.rank < rank):
            break
        at(run.events, place).time_s = event.time_s
        at(run.events, place).rank = event.rank
        place = above
    at(run.events, place).time_s = time_s
    at(run.events, place).rank = rank


@inner_kernel
def end_part(run: ProgramRun) -> None:
    """Note that a worker or member is done; the last of a step starts those that wait for all."""
    header, outcome = run.header, run.outcome
    outcome.num_running -= 1
    if header.num_late > 0 and outcome.num_running == header.num_late:
        for member in range(header.num_members - header.num_late, header.num_members):
            push(run, outcome.end_s + header.update_s, MEMBER + member)


@inner_kernel
def close_gap(run: ProgramRun) -> None:
    """Put the last event where the first one was."""
    outcome = run.outcome
    outcome.has_gap = 0
    outcome.num_queued -= 1
    last = at(run.events, outcome.num_queued)
    if outcome.num_queued > 0:
        _place_down(run, last.time_s, last.rank)


@inner_kernel
def _place_down(run: ProgramRun, time_s: float, rank: int) -> None:
    """Put an event into the free place at the top and restore the order."""
    count = run.outcome.num_queued
    place, below = 0, 1
    while below < count:
        event = at(run.events, below)
        if below + 1 < count:
            other = at(run.events, below + 1)
            if other.time_s < event.time_s or (
                other.time_s == event.time_s and other.rank < event.rank
            ):
                below += 1
                event = other
        if time_s < event.time_s or (time_s == event.time_s and rank < event.rank):
            break
        at(run.events, place).time_s = event.time_s
        at(run.events, place).rank = event.rank
        place = below
        below = 2 * place + 1
    at(run.events, place).time_s = time_s
    at(run.events, place).rank = rank
