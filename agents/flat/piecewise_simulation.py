"""Simulates the environments of a slice of a batch on links that move by any law."""

import numpy as np

from agents.flat.batch_arrays import BatchArrays
from agents.flat.batch_simulation import RunError
from agents.flat.batch_tables import StageTables
from agents.flat.kernels.groups import sort_rows
from agents.flat.kernels.pieces import mark_used
from agents.flat.kernels.piecewise import (
    run_foreseeable_by_pieces,
    run_migration_by_pieces,
    run_program_by_pieces,
)
from agents.flat.law_courses import LawCourses
from des.compiled.kernels.program import BEYOND, OK, PIECE, ProgramArrays, State
from des.compiled.lanes import no_record
from des.compiled.many.layout import Whole
from des.plan.replacement import Replacement

_MOST_PIECES = 2048
"""Pieces of a wire that lanes have room for; what needs more is simulated one by one."""

_MARGIN = 1.5
"""Iterations look this much further ahead than the ones before have taken."""


class PiecewiseSimulation:
    """Simulates epochs of the environments of a slice, on courses worked out as far as needed.

    What comes out is written to the outcome of the batch.
    """

    def __init__(
        self, arrays: BatchArrays, tables: StageTables, rows: Whole, courses: LawCourses
    ) -> None:
        self._arrays, self._tables, self._courses = arrays, tables, courses
        self._lanes, self._record = tables.lanes(), no_record()
        self._rules = tables.rules(is_moving=True)
        self._first_row = int(rows[0])
        num_rows, num_links = courses.pieces.num_pieces.shape
        self._done = np.zeros(num_rows, np.int64)
        self._reach_s = np.zeros(num_rows)
        self._is_used = np.zeros((num_rows, num_links), np.bool_)
        self._lacking = np.zeros(num_rows, np.int64)
        self._num_foreseeable = len(tables.foreseeable.num_bytes) - 1
        num_groups = self._num_foreseeable + len(arrays.work.num_parameters)
        self._groups, self._ordered = np.zeros((2, num_rows), np.int64)
        self._starts = np.zeros(num_groups + 2, np.int64)
        self._programs: dict[int, ProgramArrays] = {}
        self._states: dict[int, State] = {}
        self._moves: ProgramArrays | None = None

    def begin(self, rows: Whole) -> None:
        """Expect of episodes that begin what their baselines have taken."""
        self._reach_s[rows - self._first_row] = _MARGIN * self._arrays.course.baseline_time_s[rows]

    def run(self, rows: Whole) -> None:
        """Simulate the iterations of epochs; they begin at the outcome's ``duration_s``.

        Raises
        ------
        RunError
            If a run has no end.
        """
        arrays, own = self._arrays, rows - self._first_row
        outcome, num_iterations = arrays.outcome, arrays.work.num_iterations
        began_s = outcome.duration_s[rows]
        self._done[own] = 0
        outcome.busy_s[rows] = outcome.num_bytes[rows] = 0.0
        mark_used(self._courses.pieces, arrays.placed, rows, arrays.links, self._is_used)
        self._look_ahead(rows)
        groups, ordered, starts = self._groups, self._ordered, self._starts
        sort_rows(rows, arrays.placed, arrays.links, self._num_foreseeable, groups, ordered, starts)
        self._run_foreseeable(ordered, starts)
        for row in ordered[self._done[ordered - self._first_row] < num_iterations].tolist():
            self._run_program(row)
        took_s = (outcome.duration_s[rows] - began_s) / num_iterations
        self._reach_s[own] = _MARGIN * took_s

    def migrate(self, rows: Whole, costs: Replacement) -> None:
        """Simulate the changes of placement with which epochs begin.

        Raises
        ------
        RunError
            If a run has no end.
        """
        if self._moves is None:
            self._moves = self._tables.moves()
        arrays, state = self._arrays, self._state(1)
        for row in rows.tolist():
            status = BEYOND
            while status == BEYOND:
                self._moves = self._with_room(self._moves, row)
                status = run_migration_by_pieces(
                    self._moves,
                    state,
                    row,
                    arrays.course.last,
                    arrays.placed,
                    arrays.work,
                    arrays.links,
                    arrays.course.base,
                    self._courses.pieces,
                    arrays.course,
                    float(costs.restart_s),
                    costs.pays_bytes,
                    arrays.outcome,
                )
                self._go_beyond(status, state, row, 0.0)

    def _run_foreseeable(self, ordered: Whole, starts: Whole) -> None:
        """Simulate what lanes can hold; the rest stays undone."""
        arrays, lacking = self._arrays, self._lacking
        while True:
            num_lacking, fullest = run_foreseeable_by_pieces(
                self._lanes,
                self._rules,
                self._record,
                self._tables.foreseeable,
                ordered,
                starts,
                self._done,
                self._reach_s,
                arrays.placed,
                arrays.work,
                arrays.links,
                arrays.course.base,
                self._courses.pieces,
                arrays.course,
                arrays.outcome,
                lacking,
            )
            if num_lacking == 0 or fullest > _MOST_PIECES:
                return
            if fullest > self._lanes.pieces.shape[1]:
                self._lanes = self._tables.lanes(1 << (fullest - 1).bit_length())
                continue
            self._look_further(lacking[:num_lacking])

    def _look_further(self, rows: Whole) -> None:
        """Let runs that have not ended see more of the courses, if there is more."""
        own = rows - self._first_row
        before_s = self._reach_s[own]
        self._reach_s[own] *= 2.0
        for row, reach_s in zip(rows.tolist(), before_s.tolist(), strict=True):
            now_s, until_s = self._now_s(row), self._until_s(row)
            used = np.flatnonzero(self._is_used[row - self._first_row]).tolist()
            has_more = self._courses.extend(row, used, until_s)
            for link in used:
                has_more |= until_s < self._courses.end_s(row, link) < np.inf
                has_more |= self._courses.last_border_s(row, link) - now_s > reach_s
            if now_s > self._arrays.work.latest_start_s or not has_more:
                raise RunError(row)

    def _look_ahead(self, rows: Whole) -> None:
        """Work out the courses in use for as long as epochs are likely to take."""
        until_s = np.zeros(len(self._reach_s))
        now_s = self._arrays.course.start_s[rows] + self._arrays.outcome.duration_s[rows]
        own = rows - self._first_row
        until_s[own] = now_s + self._arrays.work.num_iterations * self._reach_s[own]
        self._courses.extend_all(rows, self._is_used, until_s)

    def _run_program(self, row: int) -> None:
        """Simulate an epoch event by event."""
        arrays = self._arrays
        num_stages, status = int(arrays.placed.num_stages[row]), BEYOND
        if num_stages not in self._programs:
            self._programs[num_stages] = self._tables.program(num_stages)
        state = self._state(num_stages)
        while status == BEYOND:
            program = self._with_room(self._programs[num_stages], row)
            self._programs[num_stages] = program
            status = run_program_by_pieces(
                program,
                state,
                row,
                self._done,
                arrays.placed,
                arrays.work,
                arrays.links,
                arrays.course.base,
                self._courses.pieces,
                arrays.course,
                arrays.outcome,
            )
            self._go_beyond(status, state, row, float(arrays.outcome.duration_s[row]))

    def _go_beyond(self, status: int, state: State, row: int, began_s: float) -> None:
        """Work out more of the course of the link whose pieces did not suffice, if any."""
        if status == OK:
            return
        now_s = float(self._arrays.course.start_s[row]) + began_s
        link, time_s = int(state.outcome["link"][0]), float(state.outcome["time_s"][0])
        far_s = now_s + 2.0 * max(time_s, float(self._reach_s[row - self._first_row]))
        if status != BEYOND or not self._courses.extend(row, [link], far_s):
            raise RunError(row)

    def _with_room(self, program: ProgramArrays, row: int) -> ProgramArrays:
        """Return the program with room for all known pieces of a row."""
        needed = int(self._courses.pieces.num_pieces[row - self._first_row].sum())
        if needed <= len(program.pieces):
            return program
        return program._replace(pieces=np.zeros(2 * needed, PIECE))

    def _state(self, num_stages: int) -> State:
        """Return a state for programs of a number of stages, and for moves."""
        if num_stages not in self._states:
            self._states[num_stages] = self._tables.state(num_stages)
        return self._states[num_stages]

    def _now_s(self, row: int) -> float:
        """Time of the course at which the next iteration begins. [s]"""
        return float(self._arrays.course.start_s[row] + self._arrays.outcome.duration_s[row])

    def _until_s(self, row: int) -> float:
        """Time of the course until which the iterations to come are likely to last. [s]"""
        own = row - self._first_row
        num_left = self._arrays.work.num_iterations - int(self._done[own])
        return self._now_s(row) + num_left * float(self._reach_s[own])
