"""Iterations on the compiled engine without the environment around them."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bench.kernels.repeated import run_repeatedly
from bench.kernels.seeded import run_seeds
from bench.worlds import SEED
from des import NO_CORRECTIONS, Plan, Topology, UniformLaw, Workload
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import BANDWIDTH, BASE_LATENCY, LINK, NUM_BYTES, LaneRules, Lanes
from des.compiled.kernels.program import STEADY, UNIFORM
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
    """Return a call that simulates iterations, a multiple of 16, each in weather of its own.

    It gives the makespan and how long every stage and link is busy. The plan is a straight one on
    direct links.
    """
    table = operation_table(plan.schedule, len(plan.placement.stages), workload.num_microbatches)
    rules, record = rules_of(topology), no_record()
    lanes = [lanes_of(topology, workload, plan) for _ in range(num_threads)]
    num_batches = num_lanes // LANES
    firsts = [thread * num_batches // num_threads for thread in range(num_threads + 1)]

    def run(thread: int) -> None:
        first, count = firsts[thread], firsts[thread + 1] - firsts[thread]
        seed = SEED + first * LANES
        of_thread = lanes[thread]
        done = run_repeatedly(of_thread, rules, table.rows, table.num_stages, record, seed, count)
        if done != count:
            raise RuntimeError("bench: an iteration has not ended")

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


def rules_of(topology: Topology) -> LaneRules:
    """Law of a world's links while an iteration runs."""
    law = topology.dynamics
    assert isinstance(law, UniformLaw)
    if law.update_interval_s is None:
        return LaneRules(STEADY, math.inf, math.inf, 0.0, 0.0)
    swings = law.bandwidth_fluctuation, law.latency_jitter
    return LaneRules(UNIFORM, math.inf, law.update_interval_s, *swings)


def lanes_of(topology: Topology, workload: Workload, plan: Plan) -> Lanes:
    """Return 16 environments alike; seeds are set for each batch."""
    stages = plan.placement.stages
    table = operation_table(plan.schedule, len(stages), workload.num_microbatches)
    lanes = new_lanes(len(stages), table.num_slots)
    times_s = stage_times_s(workload, bound_stages(topology, plan), NO_CORRECTIONS)
    lanes.stages[:, : len(PASSES)] = [[[times[kind]] for kind in PASSES] for times in times_s]
    for border in range(len(stages) - 1):
        ends = stages[border].domain, stages[border + 1].domain
        for wire, pair in ((2 * border, ends), (2 * border + 1, ends[::-1])):
            index = topology.link_index[pair]
            lanes.wires[wire, LINK] = index
            lanes.wires[wire, BANDWIDTH] = topology.links[index].bandwidth_bytes_per_s
            lanes.wires[wire, BASE_LATENCY] = topology.links[index].latency_s
            lanes.wires[wire, NUM_BYTES] = workload.message_bytes
    return lanes
