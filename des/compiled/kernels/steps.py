"""Simulation of programs whose workers do steps one by one, see `des.engine.iteration`.

Every arrival is an event here, as a message may leave at that of its notice. It is compiled apart
from `des.compiled.kernels.general`, which is the quicker the less it can do.
"""

import math

from des.base.jit import inner_kernel, kernel
from des.compiled.kernels.events import (
    MEDIUM,
    MEMBER,
    MESSAGE,
    WORKER,
    close_gap,
    end_part,
    push,
)
from des.compiled.kernels.exchanges import go_on_with_exchange, receive_part
from des.compiled.kernels.fair_sharing import divide
from des.compiled.kernels.general import begin, first_records
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.messages import go_on, send
from des.compiled.kernels.program import DEADLOCK, ProgramArrays, State
from des.compiled.kernels.records import ProgramRun
from des.compiled.kernels.workers import compute
from des.program.actions import COMPUTE, SEND


@kernel
def run_steps(program: ProgramArrays, state: State) -> int:
    """Simulate a program whose header says that it is listed, as `run_program` does others."""
    run = first_records(program, state)
    header, outcome = run.header, run.outcome
    begin(run)
    for message in range(header.num_messages):
        own = at(run.parcels, message)
        own.has_arrived = own.is_held = 0
    for worker in range(header.num_workers):
        at(run.worker_states, worker).step = at(run.workers, worker).first_step
    for worker in range(header.num_workers):
        do_steps(run, worker, 0.0)
    while outcome.num_running > 0 and outcome.status == 0:
        if outcome.has_gap:
            close_gap(run)
        if outcome.num_queued == 0:
            outcome.status = DEADLOCK
            break
        outcome.has_gap = 1
        _handle(run, run.events.time_s, run.events.rank)
    status: int = outcome.status
    return status


@inner_kernel
def _handle(run: ProgramRun, now_s: float, rank: int) -> None:
    """Let the present event happen."""
    if rank >= MEDIUM:
        if at(run.medium_states, rank - MEDIUM).due_s == now_s:
            divide(run, rank - MEDIUM, now_s)
    elif rank >= MEMBER:
        go_on_with_exchange(run, rank - MEMBER, now_s, rank)
    elif rank >= WORKER:
        do_steps(run, rank - WORKER, now_s)
    elif at(run.arrivals, rank - MESSAGE).s == math.inf:
        go_on(run, rank - MESSAGE, now_s)
    else:
        meet_steps(run, rank - MESSAGE, now_s)
        receive_part(run, rank - MESSAGE, now_s)


@inner_kernel
def do_steps(run: ProgramRun, worker: int, now_s: float) -> None:
    """Do the steps of a worker from the present one on, until one of them takes time."""
    end_step, own = at(run.workers, worker).end_step, at(run.worker_states, worker)
    while own.step < end_step:
        step = at(run.steps, own.step)
        own.step += 1
        if step.action == COMPUTE:
            push(run, compute(run, worker, now_s), WORKER + worker)
            own.position += 1
            return
        if step.action == SEND:
            _send_or_hold(run, step.message, now_s)
        elif not at(run.parcels, step.message).has_arrived:
            own.waits_for = step.message
            return
    run.outcome.end_s = max(run.outcome.end_s, now_s)
    end_part(run)


@inner_kernel
def _send_or_hold(run: ProgramRun, message: int, now_s: float) -> None:
    """Send a message, or hold it until its notice has come."""
    to_notice = at(run.flows, at(run.flow_of, message).flow).to_notice
    if to_notice != 0 and not at(run.parcels, message + to_notice).has_arrived:
        at(run.parcels, message).is_held = 1
    else:
        send(run, message, now_s)


@inner_kernel
def meet_steps(run: ProgramRun, message: int, now_s: float) -> None:
    """Note an arrival: what is held for it leaves, then who waits for it goes on."""
    at(run.parcels, message).has_arrived = 1
    flow = at(run.flows, at(run.flow_of, message).flow)
    held = message + flow.to_message
    if flow.to_message != 0 and at(run.parcels, held).is_held:
        send(run, held, now_s)
    if 0 <= flow.receiver < run.header.num_workers:
        own = at(run.worker_states, flow.receiver)
        if own.waits_for == message:
            own.waits_for = -1
            do_steps(run, flow.receiver, now_s)
