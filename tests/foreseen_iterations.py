"""Iterations by recurrence, one at a time: a plan filled into lanes, and what they leave behind."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import (
    LATENCY,
    MAKESPAN,
    NUM_PIECES,
    PIECE_ROWS,
    RATE,
    STAGE_BUSY,
    START,
    STATUS,
    UNTIL,
    WIRE_BUSY,
    WIRE_TIME,
    Lanes,
    Record,
)
from des.compiled.kernels.program import BEYOND, TABLE
from des.compiled.kernels.recurrence import run_lanes
from des.compiled.lane_rules import rules_of
from des.compiled.lanes import new_lanes
from des.compiled.operation_table import PASSES, OperationTable, operation_table
from des.costs.bound_stages import bound_stages
from des.costs.local_borders import local_message_s
from des.costs.message_times import corrected
from des.costs.stage_times import stage_times_s
from des.dynamics.link_course import Weather
from des.engine.conditions import Conditions, Offer
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.placement import Stage
from des.plan.plan import Plan, replica_stages
from des.world.topology import Topology

_FEW_PIECES, MOST_PIECES = 32, 2048
"""Pieces of a course that are worked out at first, and at most: each is kept for all lanes."""

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
) -> Foreseen | None:
    """Work out an iteration that `is_foreseeable`.

    Returns
    -------
    Foreseen | None
        None where it does not end, or where links change more often than there is room for.
    """
    stages = replica_stages(plan.placement, plan.parallelism)
    table = operation_table(plan.schedule, len(stages), workload.num_microbatches)
    times_s = stage_times_s(workload, bound_stages(topology, plan), corrections)
    wires = _wires(topology, workload, plan, stages, corrections)
    rules, record = rules_of(topology), new_record(table)
    courses = _Courses(topology, wires, corrections) if rules.weather == TABLE else None
    num_pieces = _FEW_PIECES
    while num_pieces <= MOST_PIECES:
        lanes = new_lanes(len(stages), table.num_slots, num_pieces)
        lanes.stages[:, : len(PASSES)] = [[[each[kind]] for kind in PASSES] for each in times_s]
        if wires:
            lanes.wires[:, : len(_Wire._fields)] = np.array(wires)[..., np.newaxis]
        if topology.movement is not None:
            lanes.own[START], lanes.seed[:] = topology.movement.start_s, topology.movement.seed
        if courses is not None:
            courses.write(lanes)
        if run_lanes(lanes, rules, table.rows, len(stages), record) == 0:
            return _foreseen(table, lanes, record, wires)
        if lanes.own[STATUS, 0] != BEYOND:
            return None
        num_pieces *= 4
    return None


class _Wire(NamedTuple):
    """Rows of a wire that are given, see `des.compiled.kernels.lanes`."""

    bandwidth_bytes_per_s: float
    latency_s: float
    round_trip_s: float
    num_bytes: float
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
                wires.append(_Wire(1.0, border.latency_s, 0.0, border.transfer_s, 0.0, _NO_LINK))
                continue
            index = topology.link_index[sender.domain, receiver.domain]
            link = corrected(topology.links[index], corrections)
            wires.append(
                _Wire(
                    bandwidth_bytes_per_s=link.bandwidth_bytes_per_s,
                    latency_s=link.latency_s,
                    round_trip_s=topology.round_trip_s(index) * corrections.wan_latency_factor,
                    num_bytes=workload.message_bytes / plan.activation_compression,
                    overhead_s=corrections.message_overhead_s,
                    link=index,
                )
            )
    return wires


class _Courses:
    """Pieces of the links of wires by any law, worked out as far as there is room."""

    def __init__(
        self, topology: Topology, wires: Sequence[_Wire], corrections: Corrections
    ) -> None:
        assert topology.movement is not None
        weather = Weather(topology.movement, topology.links)
        self._wires = wires
        self._offers: list[list[Offer]] = [[] for _ in wires]
        self._conditions = [
            None
            if wire.link == _NO_LINK
            else Conditions(
                wire.link,
                topology.links[wire.link],
                topology.transport,
                corrections,
                weather,
                round_trip_s=topology.round_trip_s(wire.link),
            )
            for wire in wires
        ]

    def write(self, lanes: Lanes) -> None:
        """Fill the pieces of all lanes."""
        most = lanes.pieces.shape[1]
        for number, (wire, offers) in enumerate(zip(self._wires, self._offers, strict=True)):
            self._extend(number, most)
            pieces = np.empty((len(offers), PIECE_ROWS))
            for piece, (_, rate, latency_s, until_s) in enumerate(offers):
                wire_time_s = wire.num_bytes / rate if rate > 0.0 else math.inf
                pieces[piece, [RATE, WIRE_TIME]] = rate, wire_time_s
                pieces[piece, [LATENCY, UNTIL]] = latency_s, until_s
            lanes.pieces[number, : len(offers)] = pieces[..., np.newaxis]
            lanes.wires[number, NUM_PIECES] = len(offers)

    def _extend(self, number: int, most: int) -> None:
        conditions, offers = self._conditions[number], self._offers[number]
        if conditions is None and not offers:
            offers.append(Offer(1.0, 1.0, self._wires[number].latency_s, math.inf))
        while len(offers) < most and (not offers or offers[-1].until_s < math.inf):
            assert conditions is not None
            try:
                offers.append(conditions.at(offers[-1].until_s if offers else 0.0))
            except ValueError:  # a trace has ended; who needs more of it is told so there
                return


def _foreseen(
    table: OperationTable, lanes: Lanes, record: Record, wires: Sequence[_Wire]
) -> Foreseen:
    """Take what the first lane has left."""
    return Foreseen(
        table=table,
        makespan_s=float(lanes.own[MAKESPAN, 0]),
        busy_s=lanes.stages[:, STAGE_BUSY, 0],
        links=tuple(None if wire.link == _NO_LINK else wire.link for wire in wires),
        wire_busy_s=lanes.wires[: len(wires), WIRE_BUSY, 0],
        spans=record.spans[table.span_rows, :, 0],
        transfers=record.transfers[table.sent_rows, :, 0],
    )
