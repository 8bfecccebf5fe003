"""Workers of a compiled simulation: they do their operations in order, see `des.engine.iteration`.

A worker that has its device for itself need not be watched: when its operation starts follows from
its input's arrival as soon as that is known, whatever happens in between. What another worker might
notice is the output, so only operations that send one are queued.
"""

import math

from des.base.jit import inner_kernel
from des.compiled.kernels.events import MEMBER, MESSAGE, WORKER, end_part, push
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.records import ProgramRun


@inner_kernel
def advance(run: ProgramRun, worker: int, now_s: float, rank: int) -> None:
    """Begin the next operation, or wait for its input."""
    given, own = at(run.workers, worker), at(run.worker_states, worker)
    while own.position < given.end_operation:
        message = at(run.operations, own.position).input
        start_s = own.end_s
        if message >= 0:
            arrival_s = at(run.arrivals, message).s
            if given.is_alone:
                if arrival_s == math.inf:
                    own.waits_for = message
                    return
                start_s = arrival_s if arrival_s > start_s else start_s
            elif arrival_s > now_s or (arrival_s == now_s and MESSAGE + message > rank):
                own.waits_for = message
                if arrival_s < math.inf:
                    push(run, arrival_s, MESSAGE + message)
                return
        end_s = compute(run, worker, start_s if given.is_alone else now_s)
        if not given.is_alone or at(run.operations, own.position).output >= 0:
            push(run, end_s, WORKER + worker)
            return
        own.position += 1
    end_part(run)


@inner_kernel
def compute(run: ProgramRun, worker: int, start_s: float) -> float:
    """Do an operation as soon as the device is free; returns its end. [s]"""
    given, own, outcome = at(run.workers, worker), at(run.worker_states, worker), run.outcome
    if not given.is_alone:
        device = at(run.device_states, given.device)
        start_s = device.free_s if device.free_s > start_s else start_s
    work = at(run.operations, own.position).work
    duration_s = at(run.durations_s, work).s
    end_s: float = start_s + duration_s
    own.end_s = end_s
    if not given.is_alone:
        at(run.device_states, given.device).free_s = end_s
    at(run.stage_states, work >> 2).busy_s += duration_s
    outcome.end_s = max(outcome.end_s, end_s)
    if run.header.is_recorded:
        span = at(run.spans, own.position)
        span.start_s, span.end_s = start_s, end_s
    if run.header.num_members and work & 1:
        _made(run, work >> 2, start_s, end_s)
    return end_s


@inner_kernel
def _made(run: ProgramRun, stage: int, start_s: float, end_s: float) -> None:
    """Note a pass that makes gradients of a stage; the last one of a group releases its members."""
    own = at(run.stage_states, stage)
    own.num_left -= 1
    if own.num_left > 0:
        return
    group_number = at(run.stages, stage).group
    group = at(run.group_states, group_number)
    group.num_left -= 1
    group.end_s = max(group.end_s, end_s)
    if group.num_left == 0:
        _release(run, group_number, start_s, group.end_s)


@inner_kernel
def _release(run: ProgramRun, group: int, start_s: float, end_s: float) -> None:
    """Let each bucket of a group be ready when the pass has come down to its first layer."""
    given = at(run.groups, group)
    for number in range(given.first_release, given.end_release):
        release = at(run.releases, number)
        ready_s = end_s - release.left_fraction * (end_s - start_s)
        push(run, ready_s if ready_s > start_s else start_s, MEMBER + release.member)
