"""Iterations on the compiled engine without the environment around them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bench.kernels.repeated import run_repeatedly
from bench.kernels.seeded import run_seeds
from bench.worlds import SEED
from des import NO_CORRECTIONS, Plan, Topology, Workload
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import LATENCY, WIRE_TIME, Lanes
from des.compiled.lanes import new_lanes, no_record
from des.compiled.operation_table import PASSES, operation_table
from des.compiled.pack import pack
from des.compiled.state import new_state
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import stage_times_s
from des.program.lowering import lower


def iterations(
    topology: Topology, workload: Workload, plan: Plan, *, num_lanes: int, num_threads: int
) -> Callable[[], object]:
    """Return a call that simulates iterations, a multiple of 16, on links at base figures.

    It gives the makespan and how long every stage and link is busy. The plan is a straight one on
    direct links.
    """
    table = operation_table(plan.schedule, len(plan.placement.stages), workload.num_microbatches)
    record = no_record()
    lanes = [lanes_of(topology, workload, plan) for _ in range(num_threads)]
    num_batches = num_lanes // LANES
    firsts = [thread * num_batches // num_threads for thread in range(num_threads + 1)]

    def run(thread: int) -> None:
        count = firsts[thread + 1] - firsts[thread]
        run_repeatedly(lanes[thread], table.rows, table.num_stages, record, count)

    if num_threads == 1:
        return lambda: run(0)
    pool = ThreadPoolExecutor(num_threads)
    return lambda: list(pool.map(run, range(num_threads)))


def event_by_event(
    topology: Topology, workload: Workload, plan: Plan, *, num_seeds: int
) -> Callable[[], object]:
    """Return a call that simulates an iteration under ``num_seeds`` seeds of its links in turn."""
    world = topology.epoch_of(SEED)
    program = pack(world, lower(world, workload, plan), is_recorded=False)
    state = new_state(program)
    seeds, makespans_s = np.arange(SEED, SEED + num_seeds), np.zeros(num_seeds)

    def run() -> None:
        if run_seeds(program, state, seeds, makespans_s) != num_seeds:
            raise RuntimeError("bench: an iteration has not ended")

    return run


def lanes_of(topology: Topology, workload: Workload, plan: Plan) -> Lanes:
    """Return 16 environments alike."""
    stages = plan.placement.stages
    table = operation_table(plan.schedule, len(stages), workload.num_microbatches)
    lanes = new_lanes(len(stages), table.num_slots)
    times_s = stage_times_s(workload, bound_stages(topology, plan), NO_CORRECTIONS)
    lanes.stages[:, : len(PASSES)] = [[[times[kind]] for kind in PASSES] for times in times_s]
    for border in range(len(stages) - 1):
        ends = stages[border].domain, stages[border + 1].domain
        for wire, pair in ((2 * border, ends), (2 * border + 1, ends[::-1])):
            index = topology.link_index[pair]
            link = topology.links[index]
            lanes.wires[wire, WIRE_TIME] = workload.message_bytes / link.bandwidth_bytes_per_s
            lanes.wires[wire, LATENCY] = link.latency_s
    return lanes
