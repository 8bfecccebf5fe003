"""Arrivals of messages at the workers that wait for them, in a compiled simulation."""

from des.base.jit import inner_kernel
from des.compiled.kernels.events import MESSAGE, push
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.program import LINKS
from des.compiled.kernels.records import ProgramRun
from des.compiled.kernels.workers import advance


@inner_kernel
def arrive(run: ProgramRun, message: int, arrival_s: float) -> None:
    """Note when a message will arrive; what the order of events may matter to is queued."""
    header, flow = run.header, at(run.flows, at(run.flow_of, message).flow)
    at(run.arrivals, message).s = arrival_s
    is_watched = header.is_listed or (header.is_one_in_flight and flow.way == LINKS)
    receiver = flow.receiver
    if receiver >= header.num_workers:
        is_watched |= at(run.member_states, receiver - header.num_workers).waits_for == message
    elif message < header.num_initial:
        _finish(run, arrival_s)
    elif _is_awaited(run, receiver, message):
        if at(run.workers, receiver).is_alone:
            at(run.worker_states, receiver).waits_for = -1
            advance(run, receiver, arrival_s, MESSAGE + message)
        else:
            is_watched = True
    if _blocks(run, flow.sender, message):
        if at(run.workers, flow.sender).is_alone:
            unblock(run, flow.sender, arrival_s, MESSAGE + message)
        else:
            is_watched = True
    if is_watched:
        push(run, arrival_s, MESSAGE + message)


@inner_kernel
def unblock(run: ProgramRun, worker: int, arrival_s: float, rank: int) -> None:
    """Resume the worker whose message arrives."""
    own = at(run.worker_states, worker)
    own.blocked_by = -1
    own.end_s = arrival_s
    advance(run, worker, arrival_s, rank)


@inner_kernel
def meet_workers(run: ProgramRun, message: int, now_s: float) -> None:
    """Resume the receiver that waits for a message, then the sender; it arrives now."""
    flow, rank = at(run.flows, at(run.flow_of, message).flow), MESSAGE + message
    if _is_awaited(run, flow.receiver, message):
        at(run.worker_states, flow.receiver).waits_for = -1
        advance(run, flow.receiver, now_s, rank)
    if _blocks(run, flow.sender, message):
        unblock(run, flow.sender, now_s, rank)


@inner_kernel
def _is_awaited(run: ProgramRun, receiver: int, message: int) -> bool:
    """Whether a receiver is a worker that waits for a message."""
    if not 0 <= receiver < run.header.num_workers:
        return False
    waits: bool = at(run.worker_states, receiver).waits_for == message
    return waits


@inner_kernel
def _blocks(run: ProgramRun, sender: int, message: int) -> bool:
    """Whether the worker that has sent a message does nothing until it arrives."""
    if sender < 0:
        return False
    blocks: bool = at(run.worker_states, sender).blocked_by == message
    return blocks


@inner_kernel
def _finish(run: ProgramRun, arrival_s: float) -> None:
    """Count an initial message, for which no worker waits; the run ends with the last one."""
    outcome = run.outcome
    outcome.num_running -= 1
    outcome.end_s = max(outcome.end_s, arrival_s)
