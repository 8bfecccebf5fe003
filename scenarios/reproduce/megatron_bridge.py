"""Measured pre-training throughput of Megatron-Bridge, predicted from shapes of layers.

Rows of its performance summary: dense models and mixtures of experts on H100, B200, B300, GB200 and
GB300 in BF16, FP8, MXFP8 and NVFP4. One constant is fitted, on the rows of Llama 3 on H100; all
else is a data sheet's, or of A100. The mean absolute error of each kind of model has a target. The
same configuration differs by up to 77 % from release to release, so smaller errors mean little
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.flags import JsonFlag, option, parse
from des.base.lazy import lazy
from scenarios.frame.outputs import figures_option, parquet_option
from scenarios.reproduce.cases import PUBLISHED, existing_cases
from scenarios.reproduce.measured import SHOWN, draw

if TYPE_CHECKING:
    from scenarios.reproduce import measured_tables, megatron_bridge_rows, report
    from scenarios.reproduce.measured_tables import MeasuredCell, MeasuredTable
    from scenarios.reproduce.report import Reproduction
else:
    measured_tables = lazy("scenarios.reproduce.measured_tables")
    megatron_bridge_rows = lazy("scenarios.reproduce.megatron_bridge_rows")
    report = lazy("scenarios.reproduce.report")

PROG = "python -m scenarios.reproduce megatron_bridge"
SHIPPED = PUBLISHED / "megatron_bridge"
DENSE, SPARSE = "dense_tokens_per_s_gpu", "moe_tokens_per_s_gpu"
AIMS = {DENSE: (0.10, 0.119), SPARSE: (0.20, 0.391)}
"""Target for the mean absolute error of each kind of model, and the error on record."""

_EXAMPLES = f"""\
--cases is a folder of CSV files with the columns of the shipped rows.csv

examples:
  {PROG}
  {PROG} --cases unseen_rows --out runs/unseen

exit codes: 0 every bound is met; 1 one is not; 2 a flag or a file is wrong; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of the reproduction of Megatron-Bridge's rows; the fields are the flags."""

    cases: Path = option(SHIPPED, "folder of measured rows")
    out: Path = option(Path("runs/reproduce/megatron_bridge"), "folder for table and picture")
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    frame_of_run = report.run_frame(config, PROG)
    table = predict_bridge(config.cases, is_shipped=config.cases == SHIPPED)
    return report.publish(reproduce(table), config.out, frame_of_run)


def predict_bridge(folder: Path, *, is_shipped: bool = False) -> MeasuredTable:
    """Predict all rows of the CSV files of a folder that have a preset and a plan of ours.

    Raises
    ------
    UsageError
        If there is no such folder, or no row in it that is predicted.
    ValueError
        If a file is wrong; naming file, line, field, what is allowed and what came.
    """
    cells: list[MeasuredCell] = []
    left_out: dict[str, Counter[str]] = {}
    for path in sorted(existing_cases(folder, kind="folder").glob("*.csv")):
        for row in megatron_bridge_rows.read_bridge_rows(path):
            if row.misfit:
                left_out.setdefault(row.misfit, Counter())[row.model] += 1
            else:
                cells.append(_cell(row))
    if not cells:
        raise UsageError(f"cases: must be a folder with rows of known models; {folder} has none")
    return measured_tables.MeasuredTable(
        name="megatron_bridge",
        cells=tuple(cells),
        targets=tuple(
            measured_tables.ErrorTarget(
                quantity=quantity,
                noun=f"{quantity.partition('_')[0]} rows",
                target=target,
                recorded=recorded if is_shipped else None,
            )
            for quantity, (target, recorded) in AIMS.items()
        ),
        regimes=("model", "system", "precision"),
        notes=tuple(
            f"Not predicted, as {why}: "
            f"{', '.join(f'{count} rows of {model}' for model, count in sorted(models.items()))}."
            for why, models in sorted(left_out.items())
        ),
    )


def _cell(row: megatron_bridge_rows.BridgeRow) -> MeasuredCell:
    return measured_tables.MeasuredCell(
        run=f"{row.model} {row.system} {row.precision} {row.release}",
        quantity=SPARSE if row.is_sparse else DENSE,
        measured=row.tokens_per_s_gpu,
        predicted=row.predicted_tokens_per_s_gpu,
        columns={"model": row.model, "system": row.system, "precision": row.precision}
        | {name: getattr(row, name) for name in ("gpus", "tp", "pp", "cp", "vp", "ep", "fsdp")},
    )


def reproduce(table: MeasuredTable) -> Reproduction:
    """Judge the mean absolute error of dense models and of mixtures of experts."""
    bounds, unjudged = measured_tables.table_bounds([table])
    fitted = megatron_bridge_rows.H100_MATMUL_EFFICIENCY
    return report.Reproduction(
        title="Throughput of Megatron-Bridge, from shapes of layers",
        frame=measured_tables.table_frame([table]),
        bounds=bounds,
        unjudged=unjudged,
        shown=SHOWN[1:],
        figure=draw([table]),
        notes=(
            *measured_tables.regime_lines([table]),
            *table.notes,
            f"Fitted: matmul_efficiency {fitted:g}, on the rows of Llama 3 on H100 alone. "
            "Attention does half of its products, those that a causal mask leaves. Memory "
            "efficiency, launches, overhead and latency are those of vTrain's A100; peaks are data "
            "sheets'.",
        ),
    )
