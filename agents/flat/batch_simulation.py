"""Simulates the environments of a slice of a batch, whatever their placements."""

import numpy as np

from agents.flat.batch_arrays import BatchArrays
from agents.flat.batch_tables import StageTables
from agents.flat.kernels.foreseeable import run_foreseeable
from agents.flat.kernels.groups import sort_rows
from agents.flat.kernels.programs import run_migrations, run_programs
from des.compiled.kernels.program import ProgramArrays
from des.compiled.lanes import no_record
from des.compiled.many.layout import Figures, Runs, Whole
from des.plan.replacement import Replacement


class RunError(RuntimeError):
    """The simulation of an environment has not ended."""

    def __init__(self, row: int) -> None:
        super().__init__(f"batched environment: simulation of environment {row} has no end")
        self.row = row


class Simulation:
    """Simulates epochs of up to ``num_rows`` environments at a time, with room of its own.

    Links of ``figures`` that are moving do so by the seeds of the epochs at which environments
    stand. What comes out is written to the outcome of the batch.
    """

    def __init__(self, arrays: BatchArrays, tables: StageTables, num_rows: int) -> None:
        self._arrays, self._tables = arrays, tables
        self._lanes, self._record = tables.lanes(), no_record()
        self._rules = {is_moving: tables.rules(is_moving=is_moving) for is_moving in (False, True)}
        self._programs: dict[int, ProgramArrays] = {}
        self._moves: ProgramArrays | None = None
        self._most_stages = 1
        self._state = tables.state(self._most_stages)
        self._num_foreseeable = len(tables.foreseeable.num_bytes) - 1
        num_groups = self._num_foreseeable + len(arrays.work.num_parameters)
        self._groups = np.zeros(num_rows, np.int64)
        self._ordered = np.zeros(num_rows, np.int64)
        self._starts = np.zeros(num_groups + 2, np.int64)

    def run(
        self, rows: Whole, runs: Runs, figures: Figures, *, is_moving: bool, num_iterations: int
    ) -> None:
        """Simulate the iterations of epochs; they begin at the outcome's ``duration_s``.

        Raises
        ------
        RunError
            If a run has no end.
        """
        arrays, ordered, starts = self._arrays, self._ordered, self._starts
        work, links, seeds = arrays.work, arrays.links, arrays.course.epoch_seed
        sort_rows(rows, runs, links, self._num_foreseeable, self._groups, ordered, starts)
        failed = run_foreseeable(
            self._lanes,
            self._rules[is_moving],
            self._record,
            self._tables.foreseeable,
            ordered,
            starts,
            seeds,
            runs,
            work,
            links,
            figures,
            num_iterations,
            arrays.outcome,
        )
        _require_end(failed)
        others = starts[self._num_foreseeable : -1]
        for number in np.flatnonzero(others[1:] > others[:-1]).tolist():
            failed = run_programs(
                self._program(number + 1),
                self._state,
                ordered[others[number] : others[number + 1]],
                seeds,
                runs,
                work,
                links,
                figures,
                is_moving,
                num_iterations,
                arrays.outcome,
            )
            _require_end(failed)

    def migrate(
        self, rows: Whole, figures: Figures, *, is_moving: bool, costs: Replacement
    ) -> None:
        """Simulate the changes of placement with which epochs begin.

        Raises
        ------
        RunError
            If a run has no end.
        """
        arrays = self._arrays
        if self._moves is None:
            self._moves = self._tables.moves()
        failed = run_migrations(
            self._moves,
            self._state,
            rows,
            arrays.course.epoch_seed,
            arrays.course.last,
            arrays.placed,
            arrays.work,
            arrays.links,
            figures,
            is_moving,
            float(costs.restart_s),
            costs.pays_bytes,
            arrays.outcome,
        )
        _require_end(failed)

    def _program(self, num_stages: int) -> ProgramArrays:
        if num_stages > self._most_stages:
            self._most_stages = num_stages
            self._state = self._tables.state(num_stages)
        if num_stages not in self._programs:
            self._programs[num_stages] = self._tables.program(num_stages)
        return self._programs[num_stages]


def _require_end(failed: int) -> None:
    if failed >= 0:
        raise RunError(failed)
