"""Tables of iteration times under 1F1B: vTrain on one node and on many, and MT-NLG."""

from pathlib import Path

from calibration.measured import runs
from calibration.measured.runs import MeasuredRun, RunTable
from scenarios.reproduce.measured_tables import ErrorTarget, MeasuredCell, MeasuredTable

QUANTITY = "iteration_s"


def predict_table(path: Path, shipped: Path) -> MeasuredTable:
    """Read a table of runs and predict them; a file without setup takes the shipped one's.

    Raises
    ------
    ValueError
        If a file is wrong, see `calibration.measured.runs.read_runs`.
    """
    return predict_runs(runs.read_runs(path, runs.read_runs(shipped).setup))


def predict_runs(table: RunTable) -> MeasuredTable:
    """Predict every run of a table."""
    setup = table.setup
    return MeasuredTable(
        name=table.name,
        cells=tuple(_cell(run, table) for run in table.runs),
        targets=(
            ErrorTarget(
                quantity=QUANTITY,
                noun="runs",
                target=setup.target_error,
                published=setup.published_error,
            ),
        ),
        regimes=("tensor", "pipeline", "microbatch_size", "hidden_size"),
    )


def _cell(run: MeasuredRun, table: RunTable) -> MeasuredCell:
    found = runs.PredictedRun(run=run, setup=table.setup, figures=runs.FITTED_FIGURES)
    return MeasuredCell(
        run=run.label,
        quantity=QUANTITY,
        measured=run.measured_iteration_s,
        predicted=found.predicted_s,
        columns={
            "num_gpus": run.num_gpus,
            "hidden_size": run.hidden_size,
            "num_layers": run.num_layers,
            "global_batch": run.global_batch,
            "tensor": run.tensor,
            "data": run.data,
            "pipeline": run.pipeline,
            "microbatch_size": run.microbatch_size,
        },
        job=(run.num_gpus, run.hidden_size, run.num_layers, run.global_batch),
    )
