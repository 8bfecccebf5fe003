"""Workers of a compiled simulation that do steps one by one, see `des.engine.iteration`.

Every arrival is an event here, as a message may leave at that of its notice.
"""

from des.base.jit import kernel
from des.compiled.kernels.events import WORKER, end_part, push
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.messages import send
from des.compiled.kernels.records import ProgramRun
from des.compiled.kernels.workers import compute
from des.program.actions import COMPUTE, SEND


@kernel
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
        elif not at(run.message_states, step.message).has_arrived:
            own.waits_for = step.message
            return
    run.outcome.end_s = max(run.outcome.end_s, now_s)
    end_part(run)


@kernel
def _send_or_hold(run: ProgramRun, message: int, now_s: float) -> None:
    """Send a message, or hold it until its notice has come."""
    to_notice = at(run.flows, at(run.flow_of, message).flow).to_notice
    if to_notice != 0 and not at(run.message_states, message + to_notice).has_arrived:
        at(run.message_states, message).is_held = 1
    else:
        send(run, message, now_s)


@kernel
def meet_steps(run: ProgramRun, message: int, now_s: float) -> None:
    """Note an arrival: what is held for it leaves, then who waits for it goes on."""
    at(run.message_states, message).has_arrived = 1
    flow = at(run.flows, at(run.flow_of, message).flow)
    held = message + flow.to_message
    if flow.to_message != 0 and at(run.message_states, held).is_held:
        send(run, held, now_s)
    if 0 <= flow.receiver < run.header.num_workers:
        own = at(run.worker_states, flow.receiver)
        if own.waits_for == message:
            own.waits_for = -1
            do_steps(run, flow.receiver, now_s)
