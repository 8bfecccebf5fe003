"""Measured pre-training throughput of Megatron-Bridge, predicted from shapes of layers.

Rows of its performance summary: dense models and mixtures of experts on H100, B200, B300, GB200 and
GB300 in BF16, FP8, MXFP8 and NVFP4. One constant is fitted, on the rows of Llama 3 on H100; all
else is a data sheet's, published, or of A100. The mean absolute error of each kind of model has a
target. The same configuration differs by up to 77 % from release to release, so smaller errors mean
little there.
"""

from collections import Counter
from pathlib import Path

from des.base.command import UsageError
from scenarios.reproduce.cases import existing_cases
from scenarios.reproduce.measured import SHOWN, draw
from scenarios.reproduce.measured_tables import (
    ErrorTarget,
    MeasuredCell,
    MeasuredTable,
    regime_lines,
    table_bounds,
    table_frame,
)
from scenarios.reproduce.megatron_bridge_rows import (
    GB200_MATMUL_EFFICIENCY,
    H100_MATMUL_EFFICIENCY,
    BridgeRow,
    read_bridge_rows,
)
from scenarios.reproduce.report import Reproduction

DENSE, SPARSE = "dense_tokens_per_s_gpu", "moe_tokens_per_s_gpu"
AIMS = {DENSE: 0.10, SPARSE: 0.20}
"""Target for the mean absolute error of each kind of model."""


def reproduce_cases(folder: Path) -> Reproduction:
    """Reproduce the rows of a folder."""
    return reproduce(predict_bridge(folder))


def predict_bridge(folder: Path) -> MeasuredTable:
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
        for row in read_bridge_rows(path):
            if row.misfit:
                left_out.setdefault(row.misfit, Counter())[row.model] += 1
            else:
                cells.append(_cell(row))
    if not cells:
        raise UsageError(f"cases: must be a folder with rows of known models; {folder} has none")
    return MeasuredTable(
        name="megatron_bridge",
        cells=tuple(cells),
        targets=tuple(
            ErrorTarget(
                quantity=quantity,
                noun=f"{quantity.partition('_')[0]} rows",
                target=target,
            )
            for quantity, target in AIMS.items()
        ),
        regimes=("model", "system", "precision"),
        notes=tuple(
            f"Not predicted, as {why}: "
            f"{', '.join(f'{count} rows of {model}' for model, count in sorted(models.items()))}."
            for why, models in sorted(left_out.items())
        ),
    )


def _cell(row: BridgeRow) -> MeasuredCell:
    return MeasuredCell(
        run=f"{row.model} {row.system} {row.precision} {row.release}",
        quantity=SPARSE if row.is_sparse else DENSE,
        measured=row.tokens_per_s_gpu,
        predicted=row.predicted_tokens_per_s_gpu,
        columns={"model": row.model, "system": row.system, "precision": row.precision}
        | {name: getattr(row, name) for name in ("gpus", "tp", "pp", "cp", "vp", "ep", "fsdp")},
    )


def reproduce(table: MeasuredTable) -> Reproduction:
    """Judge the mean absolute error of dense models and of mixtures of experts."""
    bounds, unjudged = table_bounds([table])
    fitted = H100_MATMUL_EFFICIENCY
    return Reproduction(
        title="Throughput of Megatron-Bridge, from shapes of layers",
        frame=table_frame([table]),
        bounds=bounds,
        unjudged=unjudged,
        shown=SHOWN[1:],
        figure=draw([table]),
        notes=(
            *regime_lines([table]),
            *table.notes,
            f"Fitted: matmul_efficiency {fitted:g}, on the rows of Llama 3 on H100 alone; that of "
            f"GB200, {GB200_MATMUL_EFFICIENCY:.3f}, is a rate its maker measured. Attention does "
            "half of its products, those that a causal mask leaves. Memory efficiency, launches, "
            "overhead and latency are those of vTrain's A100; peaks are data sheets'; CUDA graphs "
            "and hidden all-to-alls are those of the recipes.",
        ),
    )
