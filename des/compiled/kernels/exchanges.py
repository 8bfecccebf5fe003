"""Members of gradient exchanges in a compiled simulation, see `des.engine.gradients`."""

import math

from des.base.jit import kernel
from des.compiled.kernels.events import MEMBER, MESSAGE, end_part, push
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.messages import send
from des.compiled.kernels.records import ProgramRun


@kernel
def go_on_with_exchange(run: ProgramRun, member: int, now_s: float, rank: int) -> None:
    """Do what comes next: collectives inside, the steps between domains, the last one inside."""
    given, own = at(run.members, member), at(run.member_states, member)
    while own.num_done < given.num_before:
        own.num_done += 1
        if _goes_inside(run, member, now_s):
            return
    while own.num_done == given.num_before:
        if own.step == given.end_step - given.first_step:
            own.num_done += 1
            if given.num_after > 0 and _goes_inside(run, member, now_s):
                return
        elif _passes_step(run, member, now_s, rank):
            own.step += 1
        else:
            return
    outcome = run.outcome
    outcome.end_s = max(outcome.end_s, now_s)
    end_part(run)


@kernel
def receive_part(run: ProgramRun, message: int, now_s: float) -> None:
    """Resume a member that waits for a message; it arrives now."""
    member = at(run.flows, at(run.flow_of, message).flow).receiver - run.header.num_workers
    if member < 0 or at(run.member_states, member).waits_for != message:
        return
    at(run.member_states, member).waits_for = -1
    at(run.member_states, member).step += 1
    go_on_with_exchange(run, member, now_s, MESSAGE + message)


@kernel
def _passes_step(run: ProgramRun, member: int, now_s: float, rank: int) -> bool:
    """Send a message; or say whether the one to wait for has arrived already."""
    given, own = at(run.members, member), at(run.member_states, member)
    step = at(run.steps, given.first_step + own.step)
    message = step.message
    if step.is_sent:
        send(run, message, now_s)
        return True
    arrival_s = at(run.arrivals, message).s
    if arrival_s < now_s or (arrival_s == now_s and MESSAGE + message <= rank):
        return True
    own.waits_for = message
    if arrival_s < math.inf:
        push(run, arrival_s, MESSAGE + message)
    return False


@kernel
def _goes_inside(run: ProgramRun, member: int, now_s: float) -> bool:
    """Begin a collective inside the device, which does one at a time; False where there is none."""
    given = at(run.members, member)
    if given.inner_s < 0.0:
        return False
    device = at(run.device_states, given.device)
    start_s = device.inner_free_s if device.inner_free_s > now_s else now_s
    device.inner_free_s = start_s + given.inner_s
    push(run, device.inner_free_s, MEMBER + member)
    return True
