"""Diagnosis of a run in which something never ran: waiting nodes and causes, as lines of text."""

from collections.abc import Collection

from astra_sim.files.cycles import dependency_cycles
from astra_sim.files.execution_trace import NodeType, TraceNode
from astra_sim.run.joining import CollectiveWaits
from astra_sim.run.waiting import (
    MessageWaits,
    RankState,
    RunState,
    label,
    listed,
    named,
)
from astra_sim.system.collectives import CHUNK_TAG_OFFSET
from astra_sim.workload.rank import SLOT_OF_TYPE, Slot, slot_of

MAX_RANKS = 20
"""Ranks that the diagnosis speaks of; it counts the others."""
MAX_NODES = 5
"""Nodes in flight and cycles that it explains for each rank."""


def diagnose(run: RunState) -> tuple[str, ...]:
    """Say for every rank what it waits for and what never ran; nothing if all is well.

    Messages that were never received are named as well, although their senders end.
    """
    stuck = [one for one in run.ranks if not one.finished or len(one.done) < len(one.trace.nodes)]
    return (*(_stuck_lines(run, stuck) if stuck else ()), *_unreceived(run))


def _stuck_lines(run: RunState, stuck: list[RankState]) -> list[str]:
    messages, collectives = MessageWaits(run), CollectiveWaits(run)
    unfinished = sum(not state.finished for state in stuck)
    never_run = sum(len(state.trace.nodes) - len(state.done) for state in stuck)
    lines = [
        f"{unfinished} of {len(run.ranks)} ranks did not finish, {never_run} nodes did not complete"
    ]
    for state in stuck[:MAX_RANKS]:
        told = [
            _explain(state, state.in_flight[number], messages, collectives)
            for number in sorted(state.in_flight)[:MAX_NODES]
        ]
        told += _left_out(sorted(state.in_flight)[MAX_NODES:], "more in flight")
        told += _held(state) + _blocked(state)
        lines += [f"rank {state.rank}: {text}" for text in told]
    if len(stuck) > MAX_RANKS:
        others = [state.rank for state in stuck[MAX_RANKS:]]
        lines.append(f"{len(others)} more ranks have nodes that never completed: {listed(others)}")
    return lines


def _explain(
    state: RankState, node: TraceNode, messages: MessageWaits, collectives: CollectiveWaits
) -> str:
    if node.id in state.errors:
        return f"{label(node)} cannot run and keeps its slot: {state.errors[node.id]}"
    if node.type == NodeType.COMM_RECV:
        return messages.explain_receive(state.rank, node)
    if node.type == NodeType.COMM_SEND:
        return messages.explain_send(state.rank, node)
    if node.type == NodeType.COMM_COLL:
        return collectives.explain(state.rank, node)
    return f"{label(node)} was issued, but nothing is left that would complete it"


def _left_out(numbers: list[int], what: str) -> list[str]:
    return [f"{len(numbers)} {what}: {named('node', numbers)}"] if numbers else []


def _held(state: RankState) -> list[str]:
    """Ready nodes and who holds their slots; with a free slot, no issue pass came any more."""
    holders = _by_slot(state, state.in_flight)
    lines = []
    passed_over: list[int] = []
    for slot, numbers in _by_slot(state, state.ready).items():
        if slot in holders and slot is not Slot.RECEIVE:
            holding = named("node", holders[slot])
            taken = f"the {slot.name.lower()} slot, held by {holding}"
            lines.append(f"{named('node', numbers)} ready, but waiting for {taken}")
        else:
            passed_over += numbers
    if passed_over:
        nodes = named("node", sorted(passed_over))
        lines.append(f"{nodes} ready, but nothing completes any more and has them issued")
    return lines


def _by_slot(state: RankState, numbers: Collection[int]) -> dict[Slot, list[int]]:
    """Nodes of some ids by the slot that they take; those of unknown type take none."""
    by_slot: dict[Slot, list[int]] = {}
    for node in state.trace.nodes:
        if node.id in numbers and (node.is_cpu or node.type in SLOT_OF_TYPE):
            by_slot.setdefault(slot_of(node), []).append(node.id)
    return by_slot


def _blocked(state: RankState) -> list[str]:
    """Cycles, and the nodes that wait for other nodes."""
    blocked = {
        node.id: node.dependencies
        for node in state.trace.nodes
        if node.id not in state.done
        and node.id not in state.in_flight
        and node.id not in state.ready
    }
    cycles = dependency_cycles(blocked)
    lines = [
        f"nodes {' -> '.join(str(number) for number in (*cycle, cycle[0]))} depend on each other "
        "in a cycle and never run"
        for cycle in cycles[:MAX_NODES]
    ]
    lines += _left_out([cycle[0] for cycle in cycles[MAX_NODES:]], "more cycles, through")
    on_cycles = {number for cycle in cycles for number in cycle}
    others = sorted(set(blocked) - on_cycles)
    if others:
        lines.append(f"{named('node', others)} never ran, waiting for nodes above")
    return lines


def _unreceived(run: RunState) -> list[str]:
    """Messages that arrived, but no receive was posted for."""
    keys = sorted((key for key in run.sends if key[0] < CHUNK_TAG_OFFSET), key=lambda key: key[1:])
    lines = [
        f"rank {source}: {len(run.sends[tag, source, target, num_bytes])} messages of {num_bytes} "
        f"bytes with tag {tag} to rank {target} were never received"
        for tag, source, target, num_bytes in keys[:MAX_RANKS]
    ]
    left = len(keys) - MAX_RANKS
    return [*lines, f"{left} more kinds of messages were never received"] if left > 0 else lines
