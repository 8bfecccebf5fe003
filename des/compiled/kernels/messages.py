"""Messages on their way in a compiled simulation, see `des.engine.network`."""

from des.base.jit import inner_kernel
from des.compiled.kernels.arrivals import arrive
from des.compiled.kernels.events import MESSAGE, push
from des.compiled.kernels.fair_sharing import enqueue_message, join
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.program import LOCAL_WIRE, SAME_DEVICE
from des.compiled.kernels.records import ProgramRun
from des.compiled.kernels.wires import carry


@inner_kernel
def send(run: ProgramRun, message: int, now_s: float) -> None:
    """Pass a message on: within the device, within the domain, or over links."""
    flow = at(run.flows, at(run.flow_of, message).flow)
    if flow.way == SAME_DEVICE:
        arrive(run, message, now_s)
    elif flow.way == LOCAL_WIRE:
        free_s = at(run.local_wires, flow.first_hop).free_s
        end_s = (now_s if now_s > free_s else free_s) + flow.transfer_s
        if not run.header.is_unshared:
            at(run.local_wires, flow.first_hop).free_s = end_s
        arrive(run, message, end_s + flow.latency_s)
    else:
        at(run.parcels, message).hop = 0
        at(run.parcels, message).has_come = 0
        if run.header.is_one_in_flight == 0 or _takes_turn(run, flow.endpoint, message):
            go_on(run, message, now_s)


@inner_kernel
def go_on(run: ProgramRun, message: int, now_s: float) -> None:
    """Take a message over its next hop, from the domain where it is."""
    flow, parcel = at(run.flows, at(run.flow_of, message).flow), at(run.parcels, message)
    link = at(run.hops, flow.first_hop + parcel.hop).link
    if run.header.is_fair:
        if parcel.has_come:
            join(run, link, message, now_s)
        else:
            enqueue_message(run, link, message, now_s)
        return
    arrival_s = carry(run, link, message, flow.num_bytes, now_s)
    parcel.hop += 1
    if run.outcome.status:
        return
    if parcel.hop == flow.num_hops:
        arrive(run, message, arrival_s)
    else:
        push(run, arrival_s, MESSAGE + message)


@inner_kernel
def leave_endpoint(run: ProgramRun, message: int, now_s: float) -> None:
    """Let the next message leave an endpoint when the one before has arrived."""
    device = at(run.device_states, at(run.flows, at(run.flow_of, message).flow).endpoint)
    if device.message != message:
        return
    device.message = device.head
    if device.head >= 0:
        device.head = at(run.parcels, device.head).following
        go_on(run, device.message, now_s)


@inner_kernel
def _takes_turn(run: ProgramRun, endpoint: int, message: int) -> bool:
    """Whether a message may leave now; else it waits after the others."""
    device = at(run.device_states, endpoint)
    if device.message < 0:
        device.message = message
        return True
    at(run.parcels, message).following = -1
    if device.head < 0:
        device.head = message
    else:
        at(run.parcels, device.tail).following = message
    device.tail = message
    return False
