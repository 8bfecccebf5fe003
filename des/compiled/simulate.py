"""The compiled twin of `des.simulate`: the same arguments, the same result to the last bit."""

from collections.abc import Sequence

import numpy as np

from des.compiled.kernels.general import run_program
from des.compiled.kernels.program import BEYOND, FULL, OK, TABLE, ProgramArrays, State
from des.compiled.kernels.steps import run_steps
from des.compiled.links import Pieces
from des.compiled.pack import pack
from des.compiled.results import iteration_result
from des.compiled.state import new_state
from des.engine.iteration import run_alone
from des.engine.result import IterationResult
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.program.lowering import lower
from des.program.moves import LayerMove, lower_moves
from des.program.program import Program
from des.world.topology import Topology

_SPARE_BYTES = 1 << 16
"""More than Numba 0.68 takes unchecked to find the types of arguments (`_typeof.cpp`)."""


def simulate_compiled(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    step: int = 0,
    is_recorded: bool = True,
) -> IterationResult:
    """Simulate one iteration of a plan, see `des.simulate`; what cannot be is refused there.

    One that is not recorded has no spans and no transfers.
    """
    program = lower(topology, workload, plan, corrections, step=step)
    return simulate_program(topology, program, corrections, is_recorded=is_recorded)


def simulate_program(
    topology: Topology,
    program: Program,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    is_recorded: bool = True,
) -> IterationResult:
    """Run the program of an iteration alone on the links of the world it was lowered for."""
    arrays = pack(topology, program, corrections, is_recorded=is_recorded)
    state = run_to_end(topology, arrays)
    if state is None:
        return run_alone(topology, program, corrections).result()
    return iteration_result(topology, program, arrays, state)


def makespan_compiled_s(
    topology: Topology, program: Program, corrections: Corrections = NO_CORRECTIONS
) -> float:
    """Time of the program of an iteration, that of `simulate_program` without all else. [s]"""
    state = run_to_end(topology, pack(topology, program, corrections, is_recorded=False))
    if state is None:
        return run_alone(topology, program, corrections).result().makespan_s
    return program.with_update_s(float(state.outcome["end_s"][0]))


def moves_end_s(
    topology: Topology, moves: Sequence[LayerMove], corrections: Corrections = NO_CORRECTIONS
) -> float | None:
    """Time until layers that all leave at time 0 have arrived, see `des.program.moves`. [s]

    None where some never do, or too late to keep the courses of links, as `des.migration_s` will
    tell.
    """
    if not moves:
        return 0.0
    program = lower_moves(topology, moves)
    state = run_to_end(topology, pack(topology, program, corrections, is_recorded=False))
    return None if state is None else float(state.outcome["end_s"][0])


def run_to_end(topology: Topology, program: ProgramArrays) -> State | None:
    """Run a program of a world; None where it cannot end, or courses of links are too long.

    Then the readable engine tells.

    Where hosts have windows a program with passes runs twice, so that the first run sets them.
    """
    state = _run_from(topology, program, None)
    if state is None or not (program.header["has_windows"][0] and program.header["num_stages"][0]):
        return state
    header = program.header.copy()
    header["is_continued"] = 1
    header["before_s"] += state.outcome["end_s"]
    return _run_from(topology, program._replace(header=header), state.links)


def _run_from(
    topology: Topology, program: ProgramArrays, before: np.ndarray | None
) -> State | None:
    """Run a program whose links are as they were left before, if there was a run before."""
    state = new_state(program)
    simulate = run_steps if program.header["is_listed"][0] else run_program
    is_table = program.header["weather"][0] == TABLE
    pieces = Pieces(topology, int(program.header["num_messages"][0])) if is_table else None
    while True:
        if before is not None:
            state.links[:] = before
        bytes(_SPARE_BYTES)  # a MemoryError here, where Numba would end the process
        status = simulate(program, state)
        if status not in (BEYOND, FULL):
            return state if status == OK else None
        if status == FULL:
            state = new_state(program, 2 * int(state.outcome["gate_room"][0]))
            continue
        assert pieces is not None
        link, time_s = int(state.outcome["link"][0]), float(state.outcome["time_s"][0])
        if not pieces.extend(link, time_s, 2.0 * max(time_s, _work_s(program))):
            return None
        links = program.links.copy()
        program = program._replace(pieces=pieces.write(links), links=links)


def _work_s(program: ProgramArrays) -> float:
    """Time of all operations of the busiest worker, which no iteration is shorter than. [s]"""
    durations_s = program.durations_s["s"][program.operations["work"]]
    workers = program.workers
    return max(
        float(durations_s[first:end].sum())
        for first, end in zip(workers["first_operation"], workers["end_operation"], strict=True)
    )
