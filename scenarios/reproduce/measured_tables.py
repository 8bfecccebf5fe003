"""Tables of measured figures with the simulator's: rows, errors, bounds and biases of each.

Those of iteration times under 1F1B are read here: vTrain on one node and on many, and MT-NLG.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import pandas as pd

from calibration.measured import runs, solved_layers
from calibration.measured.run_sizes import MeasuredRun
from calibration.measured.runs import RunTable, Setup
from scenarios.reproduce.report import Bound

RUN_COLUMNS = (
    "num_gpus",
    "hidden_size",
    "num_layers",
    "global_batch",
    "tensor",
    "data",
    "pipeline",
    "microbatch_size",
)
"""Sizes of a run and the way it was shared, as columns of its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCell:
    """A measured figure of a run, and the simulator's.

    Parameters
    ----------
    run
        Name of the run in a few words.
    quantity
        Name of the figure with its unit, ``iteration_s``.
    columns
        Further columns of the row: sizes, and how the work was shared.
    job
        All that the run shares with others that do the same work in another way. Cells of equal
        job and quantity are ranked; None is ranked with nothing.
    """

    run: str
    quantity: str
    measured: float
    predicted: float
    columns: Mapping[str, int | str] = field(default_factory=dict)
    job: tuple[object, ...] | None = None

    @property
    def error_percent(self) -> float:
        """Signed error; above 0 the prediction is larger. [%]"""
        return 100.0 * (self.predicted / self.measured - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTarget:
    """A target for the mean absolute error of a table's cells of one quantity.

    ``noun`` names the cells in the plural. A table without a ``target`` is not judged. A missed
    target has the error on record as its bound, ``recorded``.
    """

    quantity: str
    noun: str
    target: float | None
    published: float | None = None
    recorded: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Cells of one file, the targets they are held against, and what its readers must know.

    ``regimes`` are columns by whose values the signed bias is told.
    """

    name: str
    cells: tuple[MeasuredCell, ...]
    targets: tuple[ErrorTarget, ...]
    regimes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def table_frame(tables: Iterable[MeasuredTable]) -> pd.DataFrame:
    """All cells, one a row: what was run, measured and predicted figures, signed error. [%]"""
    rows = []
    for table in tables:
        for cell in table.cells:
            rows.append(
                {"table": table.name, "run": cell.run}
                | dict(cell.columns)
                | {
                    "quantity": cell.quantity,
                    "measured": cell.measured,
                    "predicted": cell.predicted,
                    "error_percent": cell.error_percent,
                }
            )
    frame = pd.DataFrame(rows)
    figures = ["quantity", "measured", "predicted", "error_percent"]
    columns = [name for name in frame.columns if name not in figures]
    counts = [name for name in columns if pd.api.types.is_numeric_dtype(frame[name].dtype)]
    return frame[[*columns, *figures]].astype(dict.fromkeys(counts, "Int64"))


def table_bounds(tables: Iterable[MeasuredTable]) -> tuple[tuple[Bound, ...], tuple[str, ...]]:
    """Hold each quantity of each table against its target; one without is not judged."""
    bounds, unjudged = [], []
    for table in tables:
        for aim in table.targets:
            errors = [
                abs(cell.error_percent) for cell in table.cells if cell.quantity == aim.quantity
            ]
            if not errors:
                continue
            said = "" if aim.published is None else f" (best published {aim.published:.1%})"
            line = f"mean absolute error [%] of {len(errors)} {aim.noun} of {table.name}{said}"
            error = sum(errors) / len(errors)
            if aim.target is None:
                unjudged.append(f"{line}: {error:.1f}")
            else:
                recorded = None if aim.recorded is None else 100.0 * aim.recorded
                target = 100.0 * aim.target
                bounds.append(Bound.at_most(line, error, target, recorded=recorded, shown=".1f"))
    return tuple(bounds), tuple(unjudged)


def regime_lines(tables: Iterable[MeasuredTable]) -> list[str]:
    """Signed bias and mean absolute error of each table by its ways to share the work."""
    lines = []
    for table in tables:
        for quantity, cells in _by_quantity(table).items():
            parts = []
            for column in table.regimes:
                values = pd.Series([cell.columns[column] for cell in cells], name=column)
                errors = pd.Series([cell.error_percent for cell in cells])
                means = ", ".join(
                    f"{value}: {each.mean():+.1f} ({each.abs().mean():.1f}, n {len(each)})"
                    for value, each in errors.groupby(values)
                )
                parts.append(f"{column} {means}")
            if parts:
                lines.append(
                    f"{table.name}, {quantity}, mean error (mean absolute) [%] by regime: "
                    f"{'; '.join(parts)}."
                )
    return lines


def _by_quantity(table: MeasuredTable) -> dict[str, list[MeasuredCell]]:
    found: dict[str, list[MeasuredCell]] = {}
    for cell in table.cells:
        found.setdefault(cell.quantity, []).append(cell)
    return found


CLEAR = 0.1
"""Difference of measured figures from which a pair is clear: twice what two measurements of one
configuration differ by.
"""


def count_other_rankings(tables: Iterable[MeasuredTable]) -> list[str]:
    """Count, for each table, clear pairs of ways to run one job, and those in the other order.

    A pair has equal jobs and quantities.
    """
    lines = []
    for table in tables:
        figures: dict[tuple[object, ...], list[tuple[float, float]]] = {}
        for cell in table.cells:
            if cell.job is not None:
                same = figures.setdefault((cell.quantity, *cell.job), [])
                same.append((cell.measured, cell.predicted))
        num_clear = num_wrong = 0
        for same in figures.values():
            for (one, one_found), (other, other_found) in combinations(same, 2):
                if abs(one / other - 1.0) < CLEAR:
                    continue
                num_clear += 1
                num_wrong += (one < other) != (one_found < other_found)
        if num_clear:
            lines.append(
                f"{table.name}: {num_wrong} of {num_clear} pairs of runs of one job that differ by "
                f"{CLEAR:.0%} or more are ranked otherwise."
            )
    return lines


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
    others_s = solved_layers.predict_by_others(table.runs, public, setup)
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
