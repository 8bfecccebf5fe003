"""Tables of iteration times under 1F1B: vTrain on one node and on many, and MT-NLG."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibration.measured import runs, solved_layers
from calibration.measured.run_sizes import MeasuredRun
from calibration.measured.runs import RunTable, Setup
from scenarios.reproduce.measured_tables import (
    RUN_COLUMNS,
    ErrorTarget,
    MeasuredCell,
    MeasuredTable,
)

QUANTITY = "iteration_s"
PROFILED = "iteration_s_profiled"
"""Iteration time with layers solved from other public runs of their place, where there are any."""


def predict_table(path: Path, shipped: Path) -> MeasuredTable:
    """Read a table of runs and predict them; a file without setup takes the shipped one's.

    The error on record is that of the shipped rows, so it is not taken.

    Raises
    ------
    ValueError
        If a file is wrong, see `calibration.measured.runs.read_runs`.
    """
    public = runs.read_runs(shipped)
    lent = public.setup.model_copy(update={"recorded_error": None})
    table = runs.read_runs(path, lent)
    is_same_cluster = _without_targets(table.setup) == _without_targets(public.setup)
    return predict_runs(table, public.runs if is_same_cluster else ())


_JUDGING = ("published_error", "target_error", "recorded_error")


def _without_targets(setup: Setup) -> Setup:
    return setup.model_copy(update=dict.fromkeys(_JUDGING))


def predict_runs(table: RunTable, public: Sequence[MeasuredRun] = ()) -> MeasuredTable:
    """Predict every run of a table from shapes, and from public runs of its place other than it."""
    setup = table.setup
    target = ErrorTarget(
        quantity=QUANTITY,
        noun="runs",
        target=setup.target_error,
        published=setup.published_error,
        recorded=setup.recorded_error,
    )
    cells, targets, notes = [_cell(run, table) for run in table.runs], [target], []
    others_s = solved_layers.predicted_by_others(table.runs, public, setup)
    num_solved = sum(each is not None for each in others_s)
    if num_solved:
        cells += [
            replace(
                cell,
                quantity=PROFILED,
                predicted=cell.predicted if own_s is None else own_s,
                job=None,
            )
            for cell, own_s in zip(cells, others_s, strict=True)
        ]
        targets.append(replace(target, quantity=PROFILED, noun="runs with profiled layers"))
        notes.append(
            f"{table.name}, {PROFILED}: layers of {num_solved} of {len(others_s)} runs are solved "
            "from the public runs with layers of their sizes, their tensor width and microbatch, "
            "but never from the run itself; the others' are from shapes."
        )
    return MeasuredTable(
        name=table.name,
        cells=tuple(cells),
        targets=tuple(targets),
        regimes=("tensor", "pipeline", "microbatch_size", "hidden_size"),
        notes=tuple(notes),
    )


def _cell(run: MeasuredRun, table: RunTable) -> MeasuredCell:
    found = runs.PredictedRun(run=run, setup=table.setup, figures=runs.FITTED_FIGURES)
    return MeasuredCell(
        run=run.label,
        quantity=QUANTITY,
        measured=run.measured_iteration_s,
        predicted=found.predicted_s,
        columns={name: getattr(run, name) for name in RUN_COLUMNS},
        job=(run.num_gpus, run.hidden_size, run.num_layers, run.global_batch),
    )
