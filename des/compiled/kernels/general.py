"""Simulation of any program, event by event, see `des.engine.iteration`: the same to the last bit.

Events are handled in the order of (time, class, number), which is unique. What cannot be noticed by
anybody else is done before its time (see `des.compiled.kernels.workers`), so there are fewer of
them.
"""

import math

from des.base.jit import inlined, inner_kernel, kernel
from des.compiled.kernels.arrivals import meet_workers
from des.compiled.kernels.events import MEDIUM, MEMBER, MESSAGE, WORKER, close_gap, push
from des.compiled.kernels.exchanges import go_on_with_exchange, receive_part
from des.compiled.kernels.fair_sharing import divide
from des.compiled.kernels.gates import begin_gates
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.messages import go_on, leave_endpoint, send
from des.compiled.kernels.offers import begin_offers
from des.compiled.kernels.program import DEADLOCK, ProgramArrays, State
from des.compiled.kernels.records import ProgramRun
from des.compiled.kernels.windows import begin_window
from des.compiled.kernels.workers import advance


@kernel
def run_program(program: ProgramArrays, state: State) -> int:
    """Simulate a program; returns OK, STARVED, DEADLOCK, BEYOND or FULL.

    The state is that of the end only under OK; else its outcome says where the run has stopped.
    """
    return simulate_run(first_records(program, state))


@inlined
def first_records(program: ProgramArrays, state: State) -> ProgramRun:
    """Return the first records of all arrays."""
    return ProgramRun(
        program.header[0],
        program.workers[0],
        program.operations[0],
        program.durations_s[0],
        program.stages[0],
        program.groups[0],
        program.releases[0],
        program.flows[0],
        program.flow_of[0],
        program.hops[0],
        program.links[0],
        program.media[0],
        program.pieces[0],
        program.members[0],
        program.steps[0],
        program.start_ups[0],
        program.gates[0],
        program.link_gates[0],
        state.outcome[0],
        state.events[0],
        state.workers[0],
        state.devices[0],
        state.stages[0],
        state.groups[0],
        state.local_wires[0],
        state.arrivals[0],
        state.parcels[0],
        state.links[0],
        state.media[0],
        state.members[0],
        state.spans[0],
        state.transfers[0],
        state.gates[0],
        state.gate_pieces[0],
    )


@inner_kernel
def simulate_run(run: ProgramRun) -> int:
    """Simulate a program on a state, both given by their first records."""
    begin(run)
    header, outcome = run.header, run.outcome
    for message in range(header.num_initial):
        send(run, message, 0.0)
    for worker in range(header.num_workers):
        advance(run, worker, 0.0, MESSAGE - 1)
    while outcome.num_running > 0 and outcome.status == 0:
        if outcome.has_gap:
            close_gap(run)
        if outcome.num_queued == 0:
            outcome.status = DEADLOCK
            break
        outcome.has_gap = 1
        handle(run, run.events.time_s, run.events.rank)
    status: int = outcome.status
    return status


@inner_kernel
def handle(run: ProgramRun, now_s: float, rank: int) -> None:
    """Let the present event happen."""
    if rank >= MEDIUM:
        if at(run.medium_states, rank - MEDIUM).due_s == now_s:
            divide(run, rank - MEDIUM, now_s)
    elif rank >= MEMBER:
        go_on_with_exchange(run, rank - MEMBER, now_s, rank)
    elif rank >= WORKER:
        _end_operation(run, rank - WORKER, now_s)
    else:
        message = rank - MESSAGE
        if at(run.arrivals, message).s == math.inf:
            go_on(run, message, now_s)
            return
        if run.header.is_one_in_flight:
            leave_endpoint(run, message, now_s)
        meet_workers(run, message, now_s)
        receive_part(run, message, now_s)


@inner_kernel
def _end_operation(run: ProgramRun, worker: int, now_s: float) -> None:
    """Send the output of an operation and start the next one."""
    own = at(run.worker_states, worker)
    output = at(run.operations, own.position).output
    own.position += 1
    if output >= 0:
        send(run, output, now_s)
        if at(run.flows, at(run.flow_of, output).flow).sender >= 0:
            arrival_s = at(run.arrivals, output).s
            if arrival_s == math.inf or not at(run.workers, worker).is_alone:
                own.blocked_by = output
                if arrival_s < math.inf:
                    push(run, arrival_s, MESSAGE + output)
                return
            own.end_s = arrival_s
    advance(run, worker, now_s, WORKER + worker)


@inner_kernel
def begin(run: ProgramRun) -> None:
    """Set the state up for a new run."""
    header, outcome = run.header, run.outcome
    outcome.status = outcome.num_transfers = outcome.num_queued = outcome.has_gap = 0
    outcome.num_running = header.num_workers + header.num_members + header.num_initial
    outcome.link, outcome.time_s, outcome.end_s = -1, 0.0, 0.0
    for worker in range(header.num_workers):
        own = at(run.worker_states, worker)
        own.end_s = 0.0
        own.position = at(run.workers, worker).first_operation
        own.waits_for = own.blocked_by = -1
    for device in range(header.num_devices):
        own_device = at(run.device_states, device)
        own_device.free_s = own_device.inner_free_s = 0.0
        own_device.message = own_device.head = own_device.tail = -1
    for wire in range(header.num_local_wires):
        at(run.local_wires, wire).free_s = 0.0
    for message in range(header.num_messages):
        at(run.arrivals, message).s = math.inf
    _begin_stages(run)
    _begin_links(run)
    begin_gates(run)
    begin_offers(run)


@inner_kernel
def _begin_stages(run: ProgramRun) -> None:
    header = run.header
    for group in range(header.num_groups):
        at(run.group_states, group).end_s = 0.0
        at(run.group_states, group).num_left = 0
    for stage in range(header.num_stages):
        at(run.stage_states, stage).busy_s = 0.0
        if header.num_members:
            given = at(run.stages, stage)
            at(run.stage_states, stage).num_left = given.num_gradients
            at(run.group_states, given.group).num_left += 1
    for member in range(header.num_members):
        own = at(run.member_states, member)
        own.step, own.waits_for = at(run.members, member).first_step, -1


@inner_kernel
def _begin_links(run: ProgramRun) -> None:
    header = run.header
    for medium in range(header.num_media):
        at(run.medium_states, medium).free_s, at(run.medium_states, medium).due_s = 0.0, math.inf
    for link in range(header.num_links):
        own = at(run.link_states, link)
        own.last_arrival_s = own.busy_s = own.num_bytes = 0.0
        if header.has_windows:
            begin_window(run, link)
        else:
            own.left_s = 0.0
        own.began_bytes = own.known_bytes = 0.0
        own.num_messages = 0
        own.level_bytes = own.since_s = own.rate_bytes_per_s = own.busy_since_s = 0.0
        own.num_present = own.num_sending = own.has_joiner = 0
        own.head = own.tail = -1
