"""Measured training runs and the profiles to predict them from, read from a folder of CSV files.

The files are those of the artifact of Sailor (F. Strati et al., SOSP 2025): ``real_runs.csv``,
``real_runs_stages.csv``, ``layer_memory.csv`` and ``network_profiles.csv``. What was measured of a
run is kept apart from what it is predicted from, so that no prediction can see it.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from des.base.strict_forms import first_error
from des.base.text_files import read_text
from scenarios.reproduce.cases import existing_cases
from scenarios.reproduce.sailor_forms import (
    CsvForm,
    LayerForm,
    LinkForm,
    RunForm,
    StageForm,
    UsableForm,
)
from scenarios.reproduce.sailor_network import Bandwidth, NetworkProfile, bandwidth_of

_BYTES_PER_FLOAT = 4.0
LARGEST_MISFIT = 0.5
"""Share of its layers' bytes by which a stage's parameter bytes may differ from them; else the
model of the run is another one than that of the layers. (They are equal in the artifact.)"""
_NETWORK_SCOPES = ("same zone", "intra node")


@dataclass(frozen=True, slots=True, kw_only=True)
class SailorRun:
    """Inputs of one run: ``replicas[r][s]`` is stage ``s`` of data-parallel replica ``r``."""

    tensor_parallel: int
    num_microbatches: int
    replicas: tuple[tuple[StageForm, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Runs in the order of the file, the same number of measurements, and the network."""

    runs: tuple[SailorRun, ...]
    measurements: tuple[RunForm, ...]
    network: NetworkProfile
    num_unusable: int


FormT = TypeVar("FormT", bound=CsvForm)


def read_folder(folder: Path) -> Cases:
    """Read runs, stages, layers and links.

    Raises
    ------
    UsageError
        If there is no such folder.
    ValueError
        If a file or a column is missing or a cell is wrong, naming file, line and column; or if
        the files do not fit together, naming the run.
    """
    existing_cases(folder, kind="folder")
    path = folder / "real_runs.csv"
    num_rows = len(_read(path, UsableForm))
    runs = _read(path, RunForm, lambda cells: UsableForm.model_validate(cells).usable)
    if not runs:
        raise ValueError(f"{path}: usable must be 1 in some row, got none")
    _check_names(path, runs)
    usable = list(runs.values())
    stages: dict[str, list[StageForm]] = {form.run_id: [] for form in usable}
    for stage in _read(
        folder / "real_runs_stages.csv", StageForm, lambda cells: cells["run_id"] in stages
    ).values():
        stages[stage.run_id].append(stage)
    models = {form.model for form in usable}
    layers: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for layer in _read(
        folder / "layer_memory.csv", LayerForm, lambda cells: cells["model"] in models
    ).values():
        layers[layer.model, layer.tp][layer.layer] = layer.params_floats
    gpu_types = {stage.gpu_type for rows in stages.values() for stage in rows}
    links = _read(
        folder / "network_profiles.csv",
        LinkForm,
        lambda cells: (
            cells["scope"] in _NETWORK_SCOPES and {cells["src_gpu"], cells["dst_gpu"]} <= gpu_types
        ),
    )
    return Cases(
        runs=tuple(_run(form, stages[form.run_id], layers[form.model, form.tp]) for form in usable),
        measurements=tuple(usable),
        network=_network(list(links.values())),
        num_unusable=num_rows - len(usable),
    )


def _read(
    path: Path, form: type[FormT], wanted: Callable[[Mapping[str, str]], bool] | None = None
) -> dict[int, FormT]:
    """Read the rows that are wanted, by line; the others may hold anything."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    header = reader.fieldnames or ()
    for column, field in form.model_fields.items():
        name = field.alias or column
        if field.is_required() and name not in header:
            raise ValueError(f"{path}: must have the column {name}, got {', '.join(header)}")
    rows: dict[int, FormT] = {}
    empty = True
    try:
        for cells in reader:
            empty = False
            if wanted is not None and not wanted(cells):
                continue
            if None in cells:
                raise ValueError(f"must have {len(header)} cells, got {len(header)} and more")
            rows[reader.line_num] = form.model_validate(cells)
    except ValidationError as error:
        raise ValueError(f"{path}, line {reader.line_num}: {first_error(error)}") from error
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error
    if empty:
        raise ValueError(f"{path}: must hold at least one row, got none")
    return rows


def _check_names(path: Path, runs: Mapping[int, RunForm]) -> None:
    first_line: dict[str, int] = {}
    for line, form in runs.items():
        if form.run_id in first_line:
            raise ValueError(
                f"{path}, line {line}: run_id must be another for each usable run, "
                f"got {form.run_id!r} as in line {first_line[form.run_id]}"
            )
        first_line[form.run_id] = line


def _run(form: RunForm, stages: Sequence[StageForm], parameters: dict[int, float]) -> SailorRun:
    """Put the rows of a run together.

    The optimiser step was profiled on a model of two blocks between the first and last layers.
    """
    names = [f"stage {stage.stage} on {stage.gpu_type}" for stage in stages]
    profiled = sum(
        count for layer, count in parameters.items() if not 2 < layer <= form.transformer_layers
    )
    grid: dict[tuple[int, int], StageForm] = {}
    for name, stage in zip(names, stages, strict=True):
        own = range(stage.first_layer, stage.first_layer + stage.n_layers)
        missing = [layer for layer in own if layer not in parameters]
        if missing:
            raise ValueError(
                f"run {form.run_id}, {name}: layers must be in layer_memory.csv for model "
                f"{form.model} and tp {form.tp}, got layer {missing[0]}"
            )
        num_parameters = sum(parameters[layer] for layer in own)
        _check_stage(f"run {form.run_id}, {name}", form, stage, num_parameters)
        profile = stage.model_copy(update={"update_share": num_parameters / profiled})
        grid |= {(replica, stage.stage): profile for replica in stage.replica_ids}
    _check_cover(form, stages, grid)
    return SailorRun(
        tensor_parallel=form.tp,
        num_microbatches=form.n_microbatches,
        replicas=tuple(
            tuple(grid[replica, stage] for stage in range(form.pp)) for replica in range(form.dp)
        ),
    )


def _check_stage(owner: str, form: RunForm, stage: StageForm, num_parameters: float) -> None:
    """A stage has the links that it uses, and about as many parameters as its layers."""
    if stage.stage < form.pp - 1 and (stage.next_stage is None or not stage.activation_bytes):
        raise ValueError(
            f"{owner}: p2p_c2, p2p_c1, p2p_c0 and a positive send_act_bytes must be given for all "
            "but the last stage"
        )
    if form.dp > 1 and stage.replica is None:
        raise ValueError(f"{owner}: ar_c2, ar_c1 and ar_c0 must be given where dp is above 1")
    given, summed = stage.parameter_bytes, _BYTES_PER_FLOAT * num_parameters
    if abs(given - summed) > LARGEST_MISFIT * summed:
        raise ValueError(
            f"{owner}: param_bytes_per_gpu must be within {LARGEST_MISFIT:.0%} of its layers' "
            f"parameters in layer_memory.csv, {summed:.6g} bytes for model {form.model} and tp "
            f"{form.tp}, got {given:.6g}"
        )


def _check_cover(
    form: RunForm, stages: Sequence[StageForm], grid: Collection[tuple[int, int]]
) -> None:
    """Each replica has each stage once: as many as there are, all of them different."""
    given = sum(len(stage.replica_ids) for stage in stages)
    fits = all(replica < form.dp and stage < form.pp for replica, stage in grid)
    if not fits or not given == len(grid) == form.dp * form.pp:
        raise ValueError(
            f"run {form.run_id}: real_runs_stages.csv must give each of its {form.pp} stages to "
            f"each of the replicas 0 to {form.dp - 1} once, "
            f"got {[(stage.stage, stage.replica_ids) for stage in stages]}"
        )


def _network(forms: Sequence[LinkForm]) -> NetworkProfile:
    """Links inside a node and between nodes of one zone; the first row of a kind counts.

    The runs do not say their zone. Rows of several zones differ little or not at all.
    """
    between: dict[tuple[str, str], dict[int, Bandwidth]] = defaultdict(dict)
    inside: dict[tuple[str, int], Bandwidth] = {}
    for form in forms:
        bandwidth = bandwidth_of(form.c2, form.c1, form.c0)
        if form.scope == "same zone":
            between[form.src_gpu, form.dst_gpu].setdefault(form.gpus_per_side, bandwidth)
        elif form.scope == "intra node":
            inside.setdefault((form.src_gpu, form.gpus_per_side), bandwidth)
    return NetworkProfile(between=dict(between), inside=inside)
