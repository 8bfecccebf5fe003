"""Tables of compiled code by the number of stages of a placement."""

from collections.abc import Iterable
from threading import Lock

import numpy as np

from agents.flat.task import PlacementTask
from des import Placement, Topology
from des.compiled.eligibility import is_foreseeable
from des.compiled.kernels.lanes import OVERHEAD, Lanes
from des.compiled.kernels.program import HOP, ProgramArrays, State
from des.compiled.lanes import new_lanes
from des.compiled.many.layout import HeldMoments, Small, Tables
from des.compiled.many.programs import moments_of
from des.compiled.operation_table import operation_table
from des.compiled.pack import pack
from des.compiled.state import ProgramSizes, make_state
from des.program.lowering import lower
from des.program.moves import LayerMove, lower_moves
from des.schedules import stage_orders


def foreseeable_tables(task: PlacementTask, world: Topology) -> Tables:
    """Operations of iterations whose course is foreseeable, see `des.compiled.eligibility`.

    Placements have at most one stage per domain; none where the transport or the links forbid it.
    """
    workload = task.workload
    most = min(world.num_domains, workload.num_layers)
    stays = task.plan(Placement.contiguous([0], [workload.num_layers]))
    if not is_foreseeable(world, stays):  # nothing is sent, so it is the transport
        most = 0
    counts = range(1, most + 1)
    rows = [operation_table(task.schedule, n, workload.num_microbatches).rows for n in counts]
    link_bytes = _add_up(float(workload.message_bytes), workload.num_microbatches)
    return Tables(
        rows=np.concatenate([np.zeros((0, 5), np.int32), *rows]),
        first_row=np.cumsum([0, 0, *map(len, rows)]),
        num_bytes=np.array([0.0, *(_add_up(link_bytes, 2 * (n - 1)) for n in counts)]),
    )


def _add_up(figure: float, times: int) -> float:
    """Sum as it comes from adding one by one, as links and results do."""
    total = 0.0
    for _ in range(times):
        total += figure
    return total


class StageTables:
    """Programs and lanes for placements of 1, 2, ... stages, made on first use.

    Several threads may ask at a time. ``foreseeable`` is there from the start.
    """

    def __init__(self, task: PlacementTask, world: Topology, hops: Small) -> None:
        self._task = task
        self._hops = np.zeros(max(len(hops), 1), HOP)
        self._hops["link"][: len(hops)] = hops
        self._world = world
        self.foreseeable = foreseeable_tables(task, world)
        self._lock = Lock()
        self._programs: dict[int, ProgramArrays] = {}
        none = np.zeros(0, np.int64)
        first = np.full(task.workload.num_layers + 1, -1)
        self.moments = HeldMoments(first, np.zeros(1, np.int64), none, none)

    def cover(self, numbers_of_stages: Iterable[int]) -> None:
        """See to it that there are moments of these numbers of stages."""
        for num_stages in numbers_of_stages:
            with self._lock:
                if self.moments.first[num_stages] < 0:
                    self.moments = self._with_moments(num_stages)

    def program(self, num_stages: int) -> ProgramArrays:
        """Return an iteration of this number of stages, to be filled in."""
        with self._lock:
            if num_stages not in self._programs:
                self._programs[num_stages] = self._new_program(num_stages)
            return self._to_fill_in(self._programs[num_stages])

    def moves(self) -> ProgramArrays:
        """Return a change of placement that moves all layers, to be filled in."""
        num_layers = self._task.workload.num_layers
        moves = [LayerMove(layer, 0, 1, 0.0) for layer in range(num_layers)]
        lowered = lower_moves(self._world, moves)
        program = pack(self._world, lowered, self._task.corrections, is_recorded=False)
        return self._to_fill_in(program)

    def state(self, num_stages: int) -> State:
        """Return a state for all programs of at most this number of stages, and for moves."""
        workload, num_domains = self._task.workload, self._world.num_domains
        num_messages = max(2 * num_stages * workload.num_microbatches, workload.num_layers)
        return make_state(
            ProgramSizes(
                num_workers=num_stages,
                num_operations=0,
                num_stages=num_stages,
                num_devices=num_domains,
                num_groups=0,
                num_messages=num_messages,
                num_transfers=num_messages * num_domains,  # no route visits a domain twice
                num_links=len(self._world.links),
                num_local_wires=0,
                num_members=0,
                is_recorded=False,
            )
        )

    def lanes(self) -> Lanes:
        """Return lanes for all that is foreseeable."""
        task, most = self._task, len(self.foreseeable.num_bytes) - 1
        num_slots = [
            operation_table(task.schedule, number, task.workload.num_microbatches).num_slots
            for number in range(1, most + 1)
        ]
        lanes = new_lanes(max(most, 1), max(num_slots, default=1))
        lanes.wires[:, OVERHEAD] = task.corrections.message_overhead_s
        return lanes

    def _with_moments(self, num_stages: int) -> HeldMoments:
        before = self.moments
        first = before.first.copy()
        first[num_stages] = len(before.start) - 1
        orders = stage_orders(self._task.schedule, num_stages, self._task.workload.num_microbatches)
        found = moments_of([orders])
        return HeldMoments(
            first=first,
            start=np.append(before.start, before.start[-1] + found.start[1:]),
            num_whole=np.append(before.num_whole, found.num_whole),
            num_halved=np.append(before.num_halved, found.num_halved),
        )

    def _new_program(self, num_stages: int) -> ProgramArrays:
        """Lower a plan that goes to and fro between two domains, which nothing is kept of."""
        task = self._task
        stages = [stage % 2 for stage in range(num_stages)]
        num_layers = [1] * (num_stages - 1) + [task.workload.num_layers - num_stages + 1]
        plan = task.plan(Placement.contiguous(stages, num_layers))
        lowered = lower(self._world, task.workload, plan, task.corrections)
        program = pack(self._world, lowered, task.corrections, is_recorded=False)
        program.header["num_devices"] = self._world.num_domains
        return program

    def _to_fill_in(self, program: ProgramArrays) -> ProgramArrays:
        """Return a program with copies of what is overwritten, and the routes of all pairs."""
        return program._replace(
            header=program.header.copy(),
            workers=program.workers.copy(),
            durations_s=program.durations_s.copy(),
            flows=program.flows.copy(),
            links=program.links.copy(),
            hops=self._hops,
        )
