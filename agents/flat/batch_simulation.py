"""Simulates the environments of a slice of a batch, whatever their placements."""

import numpy as np

from agents.flat.batch_arrays import BatchArrays
from agents.flat.batch_tables import StageTables
from agents.flat.kernels.foreseeable import run_foreseeable
from agents.flat.kernels.groups import sort_rows
from agents.flat.kernels.programs import run_migrations, run_programs
from des.compiled.kernels.program import ProgramArrays
from des.compiled.lanes import no_record
from des.compiled.many.layout import Epochs, Figures, RowGroups, Runs, Whole
from des.plan.replacement import Replacement


class Simulation:
    """Simulates epochs of up to ``num_rows`` environments at a time, with room of its own.

    Links stand still, and what comes out is written to the outcome of the batch.
    """

    def __init__(self, arrays: BatchArrays, tables: StageTables, num_rows: int) -> None:
        self._arrays, self._tables = arrays, tables
        self._lanes, self._record = tables.lanes(), no_record()
        self._programs: dict[int, ProgramArrays] = {}
        self._moves: ProgramArrays | None = None
        self._most_stages = 1
        self._state = tables.state(self._most_stages)
        self._num_foreseeable = len(tables.foreseeable.num_bytes) - 1
        num_groups = self._num_foreseeable + len(arrays.work.num_parameters)
        self._groups = RowGroups(
            of_row=np.zeros(num_rows, np.int64),
            ordered=np.zeros(num_rows, np.int64),
            starts=np.zeros(num_groups + 2, np.int64),
        )

    def run(self, rows: Whole, runs: Runs, figures: Figures, *, num_iterations: int) -> None:
        """Simulate the iterations of epochs; they begin at the outcome's ``duration_s``."""
        groups, epochs = self._groups, self._epochs(runs, figures, num_iterations)
        sort_rows(rows, runs, epochs.links, self._num_foreseeable, groups)
        run_foreseeable(self._lanes, self._record, self._tables.foreseeable, groups, epochs)
        others = groups.starts[self._num_foreseeable : -1]
        for number in np.flatnonzero(others[1:] > others[:-1]).tolist():
            ordered = groups.ordered[others[number] : others[number + 1]]
            failed = run_programs(self._program(number + 1), self._state, ordered, epochs)
            assert failed < 0, "links that stand still carry every message"

    def migrate(self, rows: Whole, costs: Replacement) -> None:
        """Simulate the changes of placement with which epochs begin."""
        if self._moves is None:
            self._moves = self._tables.moves()
        arrays = self._arrays
        failed = run_migrations(
            self._moves,
            self._state,
            rows,
            arrays.course.last,
            self._epochs(arrays.placed, arrays.course.now, 1),
            float(costs.restart_s),
            costs.pays_bytes,
        )
        assert failed < 0, "links that stand still carry every layer"

    def _epochs(self, runs: Runs, figures: Figures, num_iterations: int) -> Epochs:
        arrays = self._arrays
        return Epochs(runs, figures, num_iterations, arrays.work, arrays.links, arrays.outcome)

    def _program(self, num_stages: int) -> ProgramArrays:
        if num_stages > self._most_stages:
            self._most_stages = num_stages
            self._state = self._tables.state(num_stages)
        if num_stages not in self._programs:
            self._programs[num_stages] = self._tables.program(num_stages)
        return self._programs[num_stages]
