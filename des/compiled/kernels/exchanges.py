"""Members of gradient exchanges in a compiled simulation: they do their steps in order."""

import math

from des.base.jit import inner_kernel
from des.compiled.kernels.events import MEMBER, MESSAGE, end_part, push
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.messages import send
from des.compiled.kernels.records import ProgramRun
from des.program.actions import REDUCE, SEND


@inner_kernel
def go_on_with_exchange(run: ProgramRun, member: int, now_s: float, rank: int) -> None:
    """Do the steps from the present one on, until one of them takes time."""
    given, own, outcome = at(run.members, member), at(run.member_states, member), run.outcome
    while own.step < given.end_step:
        step = at(run.steps, own.step)
        if step.action == REDUCE:
            own.step += 1
            _reduce(run, member, now_s)
            return
        if step.action == SEND:
            send(run, step.message, now_s)
        elif not _has_arrived(run, step.message, now_s, rank):
            own.waits_for = step.message
            return
        own.step += 1
    outcome.end_s = max(outcome.end_s, now_s)
    end_part(run)


@inner_kernel
def receive_part(run: ProgramRun, message: int, now_s: float) -> None:
    """Resume a member that waits for a message; it arrives now."""
    member = at(run.flows, at(run.flow_of, message).flow).receiver - run.header.num_workers
    if member < 0 or at(run.member_states, member).waits_for != message:
        return
    at(run.member_states, member).waits_for = -1
    at(run.member_states, member).step += 1
    go_on_with_exchange(run, member, now_s, MESSAGE + message)


@inner_kernel
def _has_arrived(run: ProgramRun, message: int, now_s: float, rank: int) -> bool:
    """Whether a message has arrived; one whose arrival is known is queued for then."""
    arrival_s = at(run.arrivals, message).s
    if arrival_s < now_s or (arrival_s == now_s and MESSAGE + message <= rank):
        return True
    if arrival_s < math.inf:
        push(run, arrival_s, MESSAGE + message)
    return False


@inner_kernel
def _reduce(run: ProgramRun, member: int, now_s: float) -> None:
    """Begin a collective inside the device, which does one at a time."""
    given = at(run.members, member)
    device = at(run.device_states, given.device)
    start_s = device.inner_free_s if device.inner_free_s > now_s else now_s
    device.inner_free_s = start_s + given.reduce_s
    push(run, device.inner_free_s, MEMBER + member)
