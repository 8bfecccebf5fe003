"""Runtime of a program: notices of posted receives, and the passes that post and wait for them."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from des.plan.corrections import Corrections
from des.program.actions import COMPUTE, NONE, PASSES
from des.program.deadlock import check_receives
from des.program.passes import (
    ProgramPass,
    WorkerLists,
    receives_as_needed,
    receives_first,
    receives_lowered,
)
from des.program.program import Channel, MessageFlow, Program
from des.program.senders import senders_wait_at_end, senders_wait_each, senders_wait_in_step
from des.world.topology import Topology

NOTICE_BYTES = 48.0
"""Size of a notice: the header of six numbers with which gloo begins what it sends. [bytes]"""

_RECEIVES: Mapping[str, ProgramPass] = MappingProxyType(
    {
        "first": receives_first,
        "as_needed": receives_as_needed,
        "lowered": receives_lowered,
    }
)
_SENDERS: Mapping[str, ProgramPass] = MappingProxyType(
    {
        "end": senders_wait_at_end,
        "step": senders_wait_in_step,
        "each": senders_wait_each,
    }
)


def with_runtime(topology: Topology, program: Program, corrections: Corrections) -> Program:
    """Return a program as the runtime of the world's transport runs it.

    Raises
    ------
    ValueError
        If receives are posted in another order than their messages are sent.
    DeadlockError
        If workers wait for each other.
    UnreachableError
        If no path leads back from a receiver to its sender.
    """
    runtime = topology.transport.runtime
    if not runtime.rendezvous or not program.workers:
        return program
    noticed = with_notices(
        topology, program, corrections, is_shared=runtime.connections == "shared"
    )
    receives, senders_wait = runtime.receives, runtime.senders_wait
    if receives == "stock":
        is_built_in = _is_gpipe_or_1f1b(program)
        receives = "as_needed" if is_built_in else "lowered"
        senders_wait = senders_wait if is_built_in else "end"
    found = _SENDERS[senders_wait](_RECEIVES[receives](noticed))
    check_receives(found)
    return found


def _is_gpipe_or_1f1b(program: Program) -> bool:
    """Whether orders are torch's GPipe or 1F1B; others, deeper warm-ups too, it lowers."""
    ahead: dict[int, tuple[int, int]] = {}
    for worker, own in zip(program.workers, WorkerLists.of(program), strict=True):
        kinds = [PASSES[row[1] % len(PASSES)] for row in own.rows if row[0] == COMPUTE]
        if len(worker.stages) != 1 or set(kinds) != {"F", "B"}:
            return False
        ahead[worker.stages[0]] = kinds.index("B"), kinds.count("F")
    needed = 0
    for stage in sorted(ahead, reverse=True):
        num_ahead, num_microbatches = ahead[stage]
        is_last = stage + 1 not in ahead or program.stages[stage + 1].first_layer == 0
        needed = 1 if is_last else min(num_microbatches, needed + 1)
        if num_ahead not in (needed, num_microbatches):
            return False
    return True


def with_notices(
    topology: Topology, program: Program, corrections: Corrections, *, is_shared: bool
) -> Program:
    """Let messages between workers over links wait for notices, which come the way back.

    Where these share the connection of the data they queue as messages of that direction, else
    they take the latency of the way.
    """
    flows, channels = list(program.flows), list(program.channels)
    for number, flow in enumerate(program.flows):
        way = () if flow.channel == NONE else program.channels[flow.channel].route
        if not way or flow.kind not in ("F", "B"):
            continue
        index_of, links = topology.index_of, topology.links
        back = topology.route(index_of[links[way[-1]].target], index_of[links[way[0]].source])
        channel, latency_s = Channel(route=back), 0.0
        if not is_shared:
            channel = Channel(wire=1 + max(one.wire for one in channels))
            factor = corrections.wan_latency_factor
            latency_s = sum(links[link].latency_s for link in back) * factor
        if channel not in channels:
            channels.append(channel)
        flows[number] = flow._replace(notice=len(flows))
        flows.append(
            MessageFlow(
                channels.index(channel),
                flow.num_messages,
                num_bytes=NOTICE_BYTES,
                latency_s=latency_s,
                stage=flow.stage + (1 if flow.kind == "F" else -1),
                kind="N",
                label=flow.label,
                label_step=flow.label_step,
            )
        )
    return replace(program, flows=tuple(flows), channels=tuple(channels))
