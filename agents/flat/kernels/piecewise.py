"""Epochs, and changes of placement, on links whose courses are given as pieces.

Every call does what the pieces allow and says what it lacks; the next call continues from there.
"""

import numpy as np

from agents.flat.kernels.foreseeable import fill_lanes
from agents.flat.kernels.pieces import lay_pieces_of_lanes, lay_pieces_of_program
from agents.flat.kernels.programs import (
    add_iteration,
    are_equal,
    fill_links,
    fill_moves,
    fill_stages,
)
from des.base.jit import kernel
from des.compiled.kernels.general import run_program
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import (
    MAKESPAN,
    STAGE_BUSY,
    START,
    STATUS,
    LaneRules,
    Lanes,
    Record,
)
from des.compiled.kernels.program import OK, STARVED, TABLE, ProgramArrays, State
from des.compiled.kernels.recurrence import run_lanes
from des.compiled.many.layout import (
    Course,
    CoursePieces,
    Figures,
    Links,
    Outcome,
    Real,
    Runs,
    Tables,
    Whole,
    Work,
)


@kernel
def run_foreseeable_by_pieces(
    lanes: Lanes,
    rules: LaneRules,
    record: Record,
    tables: Tables,
    ordered: Whole,
    starts: Whole,
    done: Whole,
    reach_s: Real,
    runs: Runs,
    work: Work,
    links: Links,
    figures: Figures,
    pieces: CoursePieces,
    course: Course,
    outcome: Outcome,
    lacking: Whole,
) -> tuple[int, int]:
    """Simulate epochs, those of ``n`` stages from ``ordered[starts[n - 1]]`` on, as far as known.

    ``done`` and ``reach_s``, by row of the pieces, are how many iterations have been simulated and
    how far from its start each looks. Returns the number of rows that cannot continue, which are
    written to ``lacking``, and how many pieces the fullest wire has.
    """
    num_lacking, fullest = 0, 0
    for num_stages in range(1, tables.first_row.size - 1):
        rows = tables.rows[tables.first_row[num_stages] : tables.first_row[num_stages + 1]]
        for begin in range(starts[num_stages - 1], starts[num_stages], LANES):
            block = ordered[begin : min(begin + LANES, starts[num_stages])]
            own = block - pieces.first_row
            if done[own[0]] == work.num_iterations:
                continue
            fill_lanes(lanes, block, course.epoch_seed, runs, work, links, figures)
            while done[own[0]] < work.num_iterations:
                latest_s = _begin_iterations(lanes, block, course, outcome)
                num_wires = 2 * (num_stages - 1)
                most = lay_pieces_of_lanes(lanes, rules, pieces, block, reach_s, num_wires)
                fullest = max(fullest, most)
                if most > lanes.pieces.shape[1] or latest_s > work.latest_start_s:
                    lacking[num_lacking : num_lacking + block.size] = block
                    num_lacking += block.size
                    break
                run_lanes(lanes, rules, rows, num_stages, record)
                num_new = _unfinished(lanes, block, lacking[num_lacking:])
                num_lacking += num_new
                if num_new > 0:
                    break
                num_bytes = tables.num_bytes[num_stages]
                _end_iterations(lanes, block, own, num_stages, num_bytes, done, outcome)
    return num_lacking, fullest


@kernel
def _begin_iterations(lanes: Lanes, block: Whole, course: Course, outcome: Outcome) -> float:
    """Let iterations begin where the course is; returns the latest start. [s]"""
    own, latest_s = lanes.own, 0.0
    for lane in range(LANES):
        row = block[min(lane, block.size - 1)]
        own[START, lane] = course.start_s[row] + outcome.duration_s[row]
        latest_s = max(latest_s, own[START, lane])
    return latest_s


@kernel
def _unfinished(lanes: Lanes, block: Whole, found: Whole) -> int:
    """Write the rows of lanes that do not end within their pieces; returns how many."""
    own, count = lanes.own, 0
    for lane in range(block.size):
        if own[STATUS, lane] != OK or not own[MAKESPAN, lane] < np.inf:
            found[count] = block[lane]
            count += 1
    return count


@kernel
def _end_iterations(
    lanes: Lanes,
    block: Whole,
    own: Whole,
    num_stages: int,
    num_bytes: float,
    done: Whole,
    outcome: Outcome,
) -> None:
    """Add what iterations have taken to the sums over epochs."""
    for lane in range(block.size):
        row = block[lane]
        busy_s = 0.0
        for stage in range(num_stages):
            busy_s += lanes.stages[stage, STAGE_BUSY, lane]
        outcome.busy_s[row] += busy_s
        outcome.num_bytes[row] += num_bytes
        outcome.duration_s[row] += lanes.own[MAKESPAN, lane]
        done[own[lane]] += 1


@kernel
def run_program_by_pieces(
    program: ProgramArrays,
    state: State,
    row: int,
    done: Whole,
    runs: Runs,
    work: Work,
    links: Links,
    figures: Figures,
    pieces: CoursePieces,
    course: Course,
    outcome: Outcome,
) -> int:
    """Simulate an epoch of a placement that has as many stages as the program, as far as known.

    Returns how the last run has ended, see `des.compiled.kernels.program`.
    """
    header, own = program.header[0], row - pieces.first_row
    header.weather = TABLE
    num_visits = np.zeros(work.rate_flops_per_s.size, np.int64)
    fill_links(program, links, figures, row)
    fill_stages(program, runs, row, work, links, num_visits)
    while done[own] < work.num_iterations:
        start_s = course.start_s[row] + outcome.duration_s[row]
        if start_s > work.latest_start_s:
            return STARVED
        lay_pieces_of_program(program, pieces, own, start_s)
        status = run_program(program, state)
        if status != OK:
            return int(status)
        add_iteration(program, state, row, outcome)
        done[own] += 1
    return OK


@kernel
def run_migration_by_pieces(
    program: ProgramArrays,
    state: State,
    row: int,
    last: Runs,
    runs: Runs,
    work: Work,
    links: Links,
    figures: Figures,
    pieces: CoursePieces,
    course: Course,
    restart_s: float,
    pays_bytes: bool,
    outcome: Outcome,
) -> int:
    """Let an epoch begin with the change from the last placement, as far as known.

    Returns how the run has ended, see `des.compiled.kernels.program`.
    """
    outcome.migration_s[row] = outcome.moved_bytes[row] = 0.0
    if are_equal(last, runs, row):
        return OK
    outcome.migration_s[row] = restart_s
    if not pays_bytes:
        return OK
    program.header[0].weather = TABLE
    outcome.moved_bytes[row] = fill_moves(program, last, runs, row, work, links)
    fill_links(program, links, figures, row)
    lay_pieces_of_program(program, pieces, row - pieces.first_row, course.start_s[row])
    status = run_program(program, state)
    if status == OK:
        outcome.migration_s[row] = state.outcome[0].end_s + restart_s
    return int(status)
