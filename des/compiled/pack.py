"""Packing: the last pass, which turns a program into the arrays that kernels read."""

from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from des.compiled.kernels.program import (
    DURATION,
    FLOW,
    FLOW_OF,
    GROUP,
    HEADER,
    HOP,
    LINKS,
    LOCAL_WIRE,
    MEMBER,
    OPERATION,
    PIECE,
    RELEASE,
    SAME_DEVICE,
    STAGE,
    STEP,
    WORKER,
    ProgramArrays,
)
from des.compiled.layout import lay_out_lists, of_owners, step_rows
from des.compiled.links import (
    gate_records,
    link_records,
    start_up_records,
    weather_fields,
)
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.program.actions import COMPUTE, NONE, PASSES, SEND, WAIT, WAIT_SENT
from des.program.program import OperationList, Program
from des.world.topology import Topology


def pack(
    topology: Topology,
    program: Program,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    is_recorded: bool = True,
) -> ProgramArrays:
    """Turn a program for links of a world into arrays.

    Where links follow a table of pieces there are none yet, see `des.compiled.simulate`.

    Raises
    ------
    ValueError
        If a worker does other than passes, each with at most a wait before it, a send behind it
        and a wait until that has arrived; or if a program without stages does other than sending
        all messages at first. Also if the world has other links than it was lowered for.
    """
    program.check_links(topology.link_index)
    flows, hops = _flow_records(program)
    counts = np.array([flow.num_messages for flow in program.flows], np.int64)
    workers, operations, steps = np.zeros(0, WORKER), np.zeros(0, OPERATION), np.zeros(0, STEP)
    if program.has_rendezvous:
        workers, operations, steps = _stepping_records(program, counts, flows)
    elif program.stages:
        workers, operations = _worker_records(program, flows)
    else:
        _require_moves(program, counts)
    members, steps = _member_records(program, counts, flows, steps)
    groups, releases = _release_records(program)
    links, media = link_records(topology, corrections)
    counted = {
        "num_workers": len(workers),
        "num_stages": len(program.stages),
        "num_devices": program.num_devices,
        "num_groups": len(groups),
        "num_messages": counts.sum(),
        "num_media": len(media),
        "num_gates": len(topology.gates),
        "num_local_wires": 1 + max((one.wire for one in program.channels), default=NONE),
        "num_members": len(members),
        "num_late": program.num_late,
        "num_initial": 0 if program.stages else counts.sum(),
        "is_listed": program.has_rendezvous,
        "is_unshared": not program.has_queues,
        "is_recorded": is_recorded,
        "update_s": program.update_s if program.num_late else 0.0,
        "before_s": 0.0 if program.num_late else program.update_s,  # to which its end is added
    }
    durations_s = [one for stage in program.stages for one in stage.durations_s]
    arrays = (
        workers,
        operations,
        np.array(durations_s, np.float64).view(DURATION),
        np.array([stage[-2:] for stage in program.stages], STAGE),
        groups,
        releases,
        flows,
        np.repeat(np.arange(len(counts)), counts).view(FLOW_OF),
        hops,
        links,
        media,
        np.zeros(1, PIECE),
        members,
        steps,
        start_up_records(topology, corrections),
        *gate_records(topology, corrections),
    )
    header = _header(topology, corrections, counted)
    return ProgramArrays(header, *(one if len(one) else np.zeros(1, one.dtype) for one in arrays))


def _header(topology: Topology, corrections: Corrections, counted: dict[str, Any]) -> np.ndarray:
    """Counts of a program, and the rules of the links."""
    transport = topology.transport
    window_bytes = transport.message_window_bytes
    fields: dict[str, Any] = {
        "num_links": len(topology.links),
        "is_fair": transport.sharing == "fair",
        "is_one_in_flight": transport.endpoints == "one_in_flight",
        "has_windows": transport.hosts is not None,
        "has_start_up": corrections.transport is not None or transport.hosts is not None,
        "message_overhead_s": corrections.message_overhead_s,
        "window_bytes": np.inf if window_bytes is None else window_bytes,
    }
    header = np.zeros(1, HEADER)
    for name, value in (fields | counted | weather_fields(topology)).items():
        header[name] = value
    return header


class _Workers(NamedTuple):
    """Operations of all workers; the flows that they wait for and wait behind, and who does."""

    operations: np.ndarray
    counts: np.ndarray
    received: tuple[np.ndarray, np.ndarray]
    held: tuple[np.ndarray, np.ndarray]


@lru_cache(maxsize=256)
def _worker_operations(
    lists: tuple[OperationList, ...],
    stages_of: tuple[tuple[int, ...], ...],
    flows_of: tuple[tuple[int, ...], ...],
    num_messages: tuple[int, ...],
) -> _Workers:
    """Turn the lists of workers into records of a pass each."""
    listed = lay_out_lists(lists, flows_of, np.array(num_messages, np.int64))
    counts, owners, actions, ports, flows, messages = listed
    padding = np.full(3, NONE)  # so that no place is out of range
    kinds, own, moved = (np.append(each, padding) for each in (actions, owners, messages))
    at = np.flatnonzero(actions == COMPUTE)
    has_input = (kinds[at - 1] == WAIT) & (own[at - 1] == owners[at])
    has_output = (kinds[at + 1] == SEND) & (own[at + 1] == owners[at])
    is_held = has_output & (kinds[at + 2] == WAIT_SENT) & (own[at + 2] == owners[at])
    is_held &= moved[at + 1] == moved[at + 2]
    num_packed = np.bincount(owners[at], 1 + has_input + has_output + is_held, len(counts))
    held = np.isin(flows, flows[at[is_held] + 1]) & (actions == SEND)
    if not np.array_equal(num_packed, counts) or held.sum() != is_held.sum():
        raise ValueError(
            "program: a worker must do passes, each with at most a wait before it, a send behind "
            "it and a wait until that has arrived, which is for all messages of a flow or none, to "
            f"be packed; got others, such as of worker {np.argmax(num_packed != counts)}"
        )
    operations = np.zeros(len(at), OPERATION)
    stages = of_owners(stages_of, owners[at], ports[at] // len(PASSES))
    operations["work"] = len(PASSES) * stages + ports[at] % len(PASSES)
    operations["input"] = np.where(has_input, moved[at - 1], NONE)
    operations["output"] = np.where(has_output, moved[at + 1], NONE)
    operations.flags.writeable = False
    return _Workers(
        operations,
        np.bincount(owners[at], minlength=len(counts)),
        (flows[at[has_input] - 1], owners[at[has_input]]),
        (flows[at[is_held] + 1], owners[at[is_held]]),
    )


def _worker_records(program: Program, flows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Workers and their operations; flows get receivers, and senders where these wait."""
    workers = program.workers
    packed = _worker_operations(
        tuple(program.operations[worker.operations] for worker in workers),
        tuple(worker.stages for worker in workers),
        tuple(worker.flows for worker in workers),
        tuple(flow.num_messages for flow in program.flows),
    )
    for name, (own, numbers) in (("receiver", packed.received), ("sender", packed.held)):
        flows[name][own] = numbers
    devices = [worker.device for worker in workers]
    num_workers = Counter(devices)
    records = np.zeros(len(workers), WORKER)
    records["end_operation"] = np.cumsum(packed.counts)
    records["first_operation"][1:] = records["end_operation"][:-1]
    records["device"] = devices
    records["is_alone"] = [num_workers[device] == 1 for device in devices]
    return records, packed.operations


def _stepping_records(
    program: Program, num_messages: np.ndarray, flows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Workers that do steps, their passes and their steps; flows get receivers and notices."""
    first = np.cumsum(num_messages) - num_messages
    for number, flow in enumerate(program.flows):
        if flow.notice != NONE:
            flows["to_notice"][number] = first[flow.notice] - first[number]
            flows["to_message"][flow.notice] = first[number] - first[flow.notice]
    rows = step_rows(program, num_messages)
    received, receivers = rows.received
    flows["receiver"][received] = receivers
    steps = np.zeros(len(rows.actions), STEP)
    steps["action"], steps["message"] = rows.actions, rows.messages
    operations = np.zeros(len(rows.work), OPERATION)
    operations["work"], operations["input"], operations["output"] = rows.work, NONE, NONE
    records = np.zeros(len(program.workers), WORKER)
    for kind, counts in (("operation", rows.num_passes), ("step", rows.counts)):
        records[f"end_{kind}"] = np.cumsum(counts)
        records[f"first_{kind}"] = records[f"end_{kind}"] - counts
    records["device"] = [worker.device for worker in program.workers]
    return records, operations, steps


def _require_moves(program: Program, num_messages: np.ndarray) -> None:
    """Refuse a program without passes that does other than sending all messages at first."""
    lists = [program.operations[worker.operations] for worker in program.workers]
    listed = lay_out_lists(lists, [worker.flows for worker in program.workers], num_messages)
    numbers = list(range(num_messages.sum()))
    actions = [SEND] * len(numbers) + [WAIT_SENT] * len(numbers)
    if listed.actions.tolist() != actions or listed.messages.tolist() != numbers * 2:
        raise ValueError(
            f"program: without stages it must send all {len(numbers)} messages and then wait for "
            f"them, to be packed; got {len(listed.actions)} operations of other kinds or order"
        )


def _member_records(
    program: Program, num_messages: np.ndarray, flows: np.ndarray, before: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Members of exchanges and their steps, behind others; flows get receivers."""
    members = program.members
    if not members:
        return np.zeros(0, MEMBER), before
    lists = [program.operations[member.worker.operations] for member in members]
    listed = lay_out_lists(lists, [member.worker.flows for member in members], num_messages)
    steps = np.zeros(len(listed.actions), STEP)
    steps["action"], steps["message"] = listed.actions, listed.messages
    waits = listed.actions == WAIT
    flows["receiver"][listed.flows[waits]] = len(program.workers) + listed.owners[waits]
    records = np.zeros(len(members), MEMBER)
    records["device"] = [member.worker.device for member in members]
    records["end_step"] = len(before) + np.cumsum(listed.counts)
    records["first_step"] = records["end_step"] - listed.counts
    records["reduce_s"] = [member.reduce_s for member in members]
    return records, np.concatenate([before, steps])


def _release_records(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Groups of stages, and the members that each releases."""
    last = max((stage.group for stage in program.stages), default=NONE) if program.members else NONE
    found: list[list[tuple[int, float]]] = [[] for _ in range(1 + last)]
    for number, member in enumerate(program.members):
        if member.group != NONE:
            found[member.group].append((number, member.left_fraction))
    groups = np.zeros(len(found), GROUP)
    groups["end_release"] = np.cumsum([len(own) for own in found])
    groups["first_release"] = groups["end_release"] - [len(own) for own in found]
    return groups, np.array([each for own in found for each in own], RELEASE)


def _flow_records(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Flows without their receivers, and the links of all channels."""
    ways, hops = [(SAME_DEVICE, 0, 0)], list[int]()
    for route, wire in program.channels:
        if route:
            ways.append((LINKS, len(hops), len(route)))
            hops += route
        else:
            ways.append((SAME_DEVICE, 0, 0) if wire == NONE else (LOCAL_WIRE, wire, 0))
    records = [
        (*ways[1 + channel], NONE, NONE, sender, num_bytes, transfer_s, latency_s, 0, 0)
        for channel, _, sender, num_bytes, transfer_s, latency_s, *_ in program.flows
    ]
    return np.array(records, FLOW), np.array(hops, np.int64).view(HOP)
