"""Tables of layers by their index, as Sailor's profiler writes them, as timed layers."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from calibration.measured.layer_tables import TimedRow
from des.base.strict_forms import form_errors
from des.base.text_files import read_text
from des.costs.profiled_times import measured_end, name_layer
from des.job.architecture import Architecture
from des.job.transformer import layer_flops
from des.world.layer_profiles import ProfiledLayer, ProfilePoint

INDEXED_COLUMNS = ("model", "gpu", "mbs", "tp", "layer", "fwd_s", "bwd_s")
"""Columns of a table of layers by index; others, such as times of updates, are left out."""

_Count = Annotated[int, Field(gt=0)]
_Time = Annotated[float, Field(ge=0)]


class _Row(BaseModel):
    """A layer of a model, 0 the embedding and the last the head, with both gradients in one."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    model: str
    gpu: str
    mbs: _Count
    tp: _Count
    layer: Annotated[int, Field(ge=0)]
    fwd_s: _Time
    bwd_s: _Time


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedLayers:
    """Model behind a table of layers by index: its architecture, sequence and name there."""

    architecture: Architecture
    sequence: int
    name: str | None = None
    exchanges: str = "excluded"


def is_indexed(path: Path) -> bool:
    """Whether a file is a table of layers by their index."""
    header = read_text(path).partition("\n")[0].strip().split(",")
    return set(INDEXED_COLUMNS) <= set(header)


def read_indexed_rows(path: Path, layers: IndexedLayers) -> list[TimedRow]:
    """Read the rows of one model; layers of one kind are repeats of one point.

    Both gradients are in one time there, which is divided as FLOPs divide it; that of an embedding
    belongs to its weights.

    Raises
    ------
    ValueError
        If the file cannot be read, a row is wrong, the model is not in it, or it has another
        number of layers.
    """
    try:
        rows = _rows_of_model(read_text(path), layers)
        return [_timed(row, layers) for row in rows]
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _rows_of_model(text: str, layers: IndexedLayers) -> list[_Row]:
    rows = []
    for number, cells in enumerate(csv.DictReader(text.splitlines(), strict=True), start=2):
        with form_errors(f"line {number}"):
            rows.append(_Row.model_validate(cells))
    models = list(dict.fromkeys(row.model for row in rows))
    name = layers.name
    if name is None and len(models) == 1:
        name = models[0]
    if name not in models:
        raise ValueError(
            f"table_model must be one of {', '.join(models) or 'none'}; got {layers.name}"
        )
    chosen = [row for row in rows if row.model == name]
    last = layers.architecture.num_layers + 1
    found = max(row.layer for row in chosen)
    if found != last:
        raise ValueError(
            f"{name}: must have layers 0 to {last}, as {layers.architecture.name} has with its "
            f"embedding and head; got up to {found}"
        )
    return chosen


def _timed(row: _Row, layers: IndexedLayers) -> TimedRow:
    kind, weight_share = _kind_of(row.layer, layers)
    return TimedRow(
        gpu=row.gpu,
        exchanges=layers.exchanges,
        point=ProfilePoint(
            layer=kind,
            tensor=row.tp,
            microbatch_size=row.mbs,
            sequence=layers.sequence,
            forward_s=row.fwd_s,
            input_gradient_s=(1.0 - weight_share) * row.bwd_s,
            weight_gradient_s=weight_share * row.bwd_s,
        ),
    )


def _kind_of(index: int, layers: IndexedLayers) -> tuple[ProfiledLayer, float]:
    """Kind of a layer, and the part of its backward pass that is of the weights."""
    architecture = layers.architecture
    if index == 0:
        return measured_end(architecture, "embedding"), 1.0
    if index > architecture.num_layers:
        return measured_end(architecture, "head"), 0.5
    flops = layer_flops(architecture, batch_size=1, sequence=layers.sequence, layer=index - 1)
    share = flops.weight_gradient / (flops.weight_gradient + flops.input_gradient)
    return name_layer(architecture, index - 1), share
