"""Lowering: a plan, or a change of plan, turned into the arrays of a `Program`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from des.compiled.exchanges import Exchanges, lower_exchanges
from des.compiled.flows import Flows, Mark, Marks
from des.compiled.kernels.program import (
    DURATION,
    HEADER,
    MEMBER,
    OPERATION,
    PIECE,
    RELEASE,
    STAGE,
    STEP,
    WORKER,
    Program,
)
from des.compiled.links import gate_records, link_records, start_up_records, weather_fields
from des.compiled.operations import PASSES, operations_of, workers_of, workers_of_stages
from des.costs.feasibility import orders_of_plan
from des.costs.local_borders import border_inside
from des.costs.stage_times import stage_times_s
from des.costs.update_times import update_s
from des.engine.migration import LayerMove
from des.job.workload import Workload
from des.plan.buckets import buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.schedules import Orders
from des.world.topology import Topology


class Lowered(NamedTuple):
    """An iteration as a program, and what turns its numbers back into names."""

    program: Program
    orders: Orders
    marks: Marks


def lower(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    step: int = 0,
    is_recorded: bool = True,
) -> Lowered:
    """Turn an iteration that `des.simulate` takes into arrays.

    Where links follow a table of pieces there are none yet, see `des.compiled.simulate`.

    Raises
    ------
    ValueError
        If the schedule or the parallelism cannot be had with the placement.
    UnreachableError
        If the plan sends between domains that no path joins.
    """
    orders = orders_of_plan(topology, workload, plan, corrections)
    times_s = stage_times_s(topology, workload, plan.stages, corrections, plan.parallelism)
    flows = Flows()
    worker_of = workers_of_stages(orders, len(plan.stages))
    _add_pipelines(flows, topology, workload, plan, worker_of, corrections=corrections)
    buckets = buckets_of(workload, plan, step)
    exchanges = lower_exchanges(
        topology,
        workload,
        plan,
        buckets,
        flows,
        num_workers=len(orders),
        corrections=corrections,
    )
    program = _program(
        topology,
        corrections,
        flows,
        exchanges,
        workers=workers_of(orders, plan.device_of_stage),
        operations=operations_of(orders, plan.replica_sizes, workload.num_microbatches),
        durations_s=np.array([times[kind] for times in times_s for kind in PASSES]).view(DURATION),
        num_workers=len(orders),
        num_stages=len(plan.stages),
        num_devices=max(plan.device_of_stage) + 1,
        num_replicas=len(plan.replica_sizes),
        is_overlapped=plan.exchange.overlapped,
        is_blocking=plan.holds_senders_up(topology),
        update_s=update_s(topology, workload, plan, corrections) if exchanges.num_late else 0.0,
        is_recorded=is_recorded,
    )
    return Lowered(program, orders, flows.marks())


def lower_moves(
    topology: Topology, moves: Sequence[LayerMove], corrections: Corrections = NO_CORRECTIONS
) -> Program:
    """Turn the messages of a change of plan into arrays: they leave at time 0, in this order."""
    flows = Flows()
    for move in moves:
        flows.add_links(
            topology.route(move.source, move.target),
            move.num_bytes,
            Mark(move.source, "M", move.layer),
            num_messages=1,
            endpoint=move.source,
        )
    nothing = Exchanges(
        np.zeros(1, STAGE), np.zeros(1, RELEASE), np.zeros(0, MEMBER), np.zeros(1, STEP)
    )
    return _program(
        topology,
        corrections,
        flows,
        nothing,
        workers=np.zeros(1, WORKER),
        operations=np.zeros(1, OPERATION),
        durations_s=np.zeros(1, DURATION),
        num_devices=topology.num_domains,
        num_initial=len(moves),
    )


def _program(
    topology: Topology,
    corrections: Corrections,
    flows: Flows,
    exchanges: Exchanges,
    *,
    workers: np.ndarray,
    operations: np.ndarray,
    durations_s: np.ndarray,
    **counts: float,
) -> Program:
    """Put the parts together; no array is empty, as kernels take the first record of each."""
    links, media = link_records(topology, corrections)
    records, flow_of, hops = flows.arrays()
    transport = topology.transport
    window_bytes = transport.message_window_bytes
    header = np.zeros(1, HEADER)
    fields: dict[str, Any] = {
        "num_messages": len(flow_of),
        "num_links": len(topology.links),
        "num_media": len(media),
        "num_gates": len(topology.gates),
        "num_local_wires": flows.num_local_wires,
        "num_members": len(exchanges.members),
        "num_late": exchanges.num_late,
        "is_fair": transport.sharing == "fair",
        "is_unshared": transport.sharing == "none",
        "is_one_in_flight": transport.endpoints == "one_in_flight",
        "has_start_up": corrections.transport is not None,
        "message_overhead_s": corrections.message_overhead_s,
        "window_bytes": np.inf if window_bytes is None else window_bytes,
    }
    for name, value in (fields | counts | weather_fields(topology)).items():
        header[name] = value
    arrays = (
        workers,
        operations,
        durations_s,
        exchanges.stages,
        exchanges.releases,
        records,
        flow_of,
        hops,
        links,
        media,
        np.zeros(1, PIECE),
        exchanges.members,
        exchanges.steps,
        start_up_records(topology, corrections),
        *gate_records(topology, corrections),
    )
    return Program(header, *(one if len(one) else np.zeros(1, one.dtype) for one in arrays))


def _add_pipelines(
    flows: Flows,
    topology: Topology,
    workload: Workload,
    plan: Plan,
    worker_of: Sequence[int],
    *,
    corrections: Corrections,
) -> None:
    """Add two flows a stage, which receives them: activations and gradients."""
    num_messages = workload.num_microbatches
    first_stage = 0
    for size in plan.replica_sizes:
        stages = range(first_stage, first_stage + size)
        for receiver in stages:
            for kind, sender in (("F", receiver - 1), ("B", receiver + 1)):
                if sender not in stages:
                    flows.add_stay(num_messages=num_messages)
                    continue
                _add_border(
                    flows,
                    topology,
                    workload,
                    plan,
                    sender=sender,
                    receiver=receiver,
                    kind=kind,
                    worker_of=worker_of,
                    corrections=corrections,
                )
        first_stage += size


def _add_border(
    flows: Flows,
    topology: Topology,
    workload: Workload,
    plan: Plan,
    *,
    sender: int,
    receiver: int,
    kind: str,
    worker_of: Sequence[int],
    corrections: Corrections,
) -> None:
    """Add what one stage sends to a neighbour: over links, inside the domain or the device."""
    source, target = plan.stages[sender].domain, plan.stages[receiver].domain
    devices = (plan.device_of_stage[sender], plan.device_of_stage[receiver])
    ends = {
        "num_messages": workload.num_microbatches,
        "receiver": worker_of[receiver],
        "sender": worker_of[sender],
    }
    if source != target:
        flows.add_links(
            topology.route(source, target),
            workload.message_bytes / plan.activation_compression,
            Mark(sender, kind),
            endpoint=devices[0],
            **ends,
        )
    elif devices[0] == devices[1]:
        flows.add_stay(**ends)
    else:
        stages = plan.stages[sender], plan.stages[receiver]
        border = border_inside(topology, workload, plan, stages, corrections)
        flows.add_local(devices, border, **ends)
