"""Iterations by recurrence, one at a time: a plan filled into lanes, and what they leave behind."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from des.base.arithmetic import goodput
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import STAGE_BUSY, WIRE_BUSY, Lanes, Record
from des.compiled.kernels.recurrence import run_lanes
from des.compiled.lanes import new_lanes
from des.compiled.operation_table import PASSES, OperationTable, operation_table
from des.costs.bound_stages import bound_stages
from des.costs.local_borders import local_message_s
from des.costs.message_times import corrected
from des.costs.stage_times import stage_times_s
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.placement import Stage
from des.plan.plan import Plan, replica_stages
from des.world.topology import Topology

_NO_LINK = -1


def new_record(table: OperationTable) -> Record:
    """Make room for all that happens in a run of a table."""
    num_rows = len(table.rows)
    return Record(spans=np.zeros((num_rows, 2, LANES)), transfers=np.zeros((num_rows, 3, LANES)))


class Foreseen(NamedTuple):
    """Times of one iteration. [s]

    Attributes
    ----------
    busy_s, wire_busy_s
        By stage and by wire; wires are numbered as in the table.
    links
        Link of each wire, None for one inside a domain.
    spans
        Start and end of each operation, by row of ``table.span_rows``.
    transfers
        Times at which messages start, have left and arrive, shaped as ``table.sent_rows``, 3.
    """

    table: OperationTable
    makespan_s: float
    busy_s: np.ndarray
    links: tuple[int | None, ...]
    wire_busy_s: np.ndarray
    spans: np.ndarray
    transfers: np.ndarray


def simulate_foreseeable(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections = NO_CORRECTIONS
) -> Foreseen:
    """Work out an iteration that `is_foreseeable`, on links that stand still."""
    stages = replica_stages(plan.placement, plan.parallelism)
    table = operation_table(plan.schedule, len(stages), workload.num_microbatches)
    times_s = stage_times_s(workload, bound_stages(topology, plan), corrections)
    wires, record = _wires(topology, workload, plan, stages, corrections), new_record(table)
    lanes = new_lanes(len(stages), table.num_slots)
    lanes.stages[:, : len(PASSES)] = [[[each[kind]] for kind in PASSES] for each in times_s]
    if wires:
        lanes.wires[:, :3] = np.array(wires)[:, :3, np.newaxis]
    run_lanes(lanes, table.rows, len(stages), record)
    return _foreseen(table, lanes, record, wires)


class _Wire(NamedTuple):
    """Rows of a wire that are given, see `des.compiled.kernels.lanes`, and its link."""

    wire_time_s: float
    latency_s: float
    overhead_s: float
    link: int


def _wires(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    stages: Sequence[Stage],
    corrections: Corrections,
) -> list[_Wire]:
    """Wires of all borders, down and up in turn."""
    wires = []
    for upper, lower in pairwise(stages):
        for sender, receiver in ((upper, lower), (lower, upper)):
            if sender.domain == receiver.domain:
                parallelism = plan.parallelism[sender.domain]
                domain = topology.domains[sender.domain]
                device = min(sender.device, receiver.device)
                border = local_message_s(workload, domain, parallelism, corrections, device=device)
                wires.append(_Wire(border.transfer_s, border.latency_s, 0.0, _NO_LINK))
                continue
            index = topology.link_index[sender.domain, receiver.domain]
            link, window = corrected(topology.links[index], corrections), topology.transport
            rate = link.bandwidth_bytes_per_s
            if window.message_window_bytes is not None:
                round_trip_s = topology.round_trips_s[index] * corrections.wan_latency_factor
                rate = goodput(rate, round_trip_s, window.message_window_bytes)
            num_bytes = workload.message_bytes / plan.activation_compression
            overhead_s = corrections.message_overhead_s
            wires.append(_Wire(num_bytes / rate, link.latency_s, overhead_s, index))
    return wires


def _foreseen(
    table: OperationTable, lanes: Lanes, record: Record, wires: Sequence[_Wire]
) -> Foreseen:
    """Take what the first lane has left."""
    return Foreseen(
        table=table,
        makespan_s=float(lanes.makespan_s[0, 0]),
        busy_s=lanes.stages[:, STAGE_BUSY, 0],
        links=tuple(None if wire.link == _NO_LINK else wire.link for wire in wires),
        wire_busy_s=lanes.wires[: len(wires), WIRE_BUSY, 0],
        spans=record.spans[table.span_rows, :, 0],
        transfers=record.transfers[table.sent_rows, :, 0],
    )
