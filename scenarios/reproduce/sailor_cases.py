"""Measured training runs and the profiles to predict them from, read from a folder of CSV files.

The files are those of the artifact of Sailor (F. Strati et al., SOSP 2025): ``real_runs.csv``,
``real_runs_stages.csv``, ``layer_memory.csv`` and ``network_profiles.csv``. What was measured of a
run is kept apart from what it is predicted from, so that no prediction can see it.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from des.topology_forms import first_error
from scenarios.files import read_text
from scenarios.reproduce.cases import existing_cases
from scenarios.reproduce.sailor_forms import CsvForm, LayerForm, LinkForm, RunForm, StageForm
from scenarios.reproduce.sailor_network import Bandwidth, NetworkProfile

_BYTES_PER_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """What is known beforehand of one stage on one type of GPU.

    ``forward_s`` and ``backward_s`` are of one microbatch, ``update_s`` is the optimiser step as
    profiled, of another model (see ``update_share``, this stage's parameters over that model's).
    ``parameter_bytes`` are of one GPU, ``activation_bytes`` leave the stage with a microbatch over
    all its GPUs. The bandwidths are of its message to the next stage, which the last stage has
    none of, and of one GPU to one GPU of another replica.
    """

    gpu_type: str
    forward_s: float
    backward_s: float
    update_s: float
    update_share: float
    parameter_bytes: float
    activation_bytes: float
    next_stage: Bandwidth | None
    replica: Bandwidth


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Inputs of one run: ``replicas[r][s]`` is stage ``s`` of data-parallel replica ``r``."""

    name: str
    tensor_parallel: int
    num_microbatches: int
    replicas: tuple[tuple[StageProfile, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What was measured of a run, and what published simulators estimate. [s]"""

    run: str
    cluster: str
    iteration_s: float
    published_s: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Runs in the order of the file, the same number of measurements, and the network."""

    runs: tuple[Run, ...]
    measurements: tuple[Measurement, ...]
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
    run_forms = _read(folder / "real_runs.csv", RunForm)
    stages: dict[str, list[StageForm]] = defaultdict(list)
    for stage in _read(folder / "real_runs_stages.csv", StageForm):
        stages[stage.run_id].append(stage)
    layers: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for layer in _read(folder / "layer_memory.csv", LayerForm):
        layers[layer.model, layer.tp][layer.layer] = layer.params_floats
    usable = [form for form in run_forms if form.usable]
    if not usable:
        raise ValueError(f"{folder / 'real_runs.csv'}: usable must be 1 in some row, got none")
    return Cases(
        runs=tuple(_run(form, stages[form.run_id], layers[form.model, form.tp]) for form in usable),
        measurements=tuple(
            Measurement(
                run=form.run_id,
                cluster=form.cluster,
                iteration_s=form.measured_iter_s,
                published_s={
                    column.removeprefix("est_").removesuffix("_s"): estimate_s
                    for column, estimate_s in form.published.items()
                },
            )
            for form in usable
        ),
        network=_network(_read(folder / "network_profiles.csv", LinkForm)),
        num_unusable=len(run_forms) - len(usable),
    )


def _read(path: Path, form: type[FormT]) -> list[FormT]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    header = reader.fieldnames or ()
    for column, field in form.model_fields.items():
        if field.is_required() and column not in header:
            raise ValueError(f"{path}: must have the column {column}, got {', '.join(header)}")
    rows: list[FormT] = []
    try:
        for cells in reader:
            if None in cells:
                raise ValueError(f"must have {len(header)} cells, got {len(header)} and more")
            rows.append(form.model_validate(cells))
    except ValidationError as error:
        raise ValueError(f"{path}, line {reader.line_num}: {first_error(error)}") from error
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error
    if not rows:
        raise ValueError(f"{path}: must hold at least one row, got none")
    return rows


def _run(form: RunForm, stages: Sequence[StageForm], parameters: dict[int, float]) -> Run:
    """Put the rows of a run together.

    The optimiser step was profiled on a model of two blocks between the first and last layers.
    """
    names = [f"stage {stage.stage} on {stage.gpu_type}" for stage in stages]
    profiled = sum(
        count for layer, count in parameters.items() if not 2 < layer <= form.transformer_layers
    )
    grid: dict[tuple[int, int], StageProfile] = {}
    for name, stage in zip(names, stages, strict=True):
        own = range(stage.first_layer, stage.first_layer + stage.n_layers)
        missing = [layer for layer in own if layer not in parameters]
        if missing:
            raise ValueError(
                f"run {form.run_id}, {name}: layers must be in layer_memory.csv for model "
                f"{form.model} and tp {form.tp}, got layer {missing[0]}"
            )
        profile = _stage(stage, sum(parameters[layer] for layer in own) / profiled)
        if stage.stage < form.pp - 1 and (profile.next_stage is None or not stage.send_act_bytes):
            raise ValueError(
                f"run {form.run_id}, {name}: p2p_c2, p2p_c1, p2p_c0 and a positive send_act_bytes "
                "must be given for all but the last stage"
            )
        grid |= {(replica, stage.stage): profile for replica in stage.replica_ids}
    _check_cover(form, stages, grid)
    return Run(
        name=form.run_id,
        tensor_parallel=form.tp,
        num_microbatches=form.n_microbatches,
        replicas=tuple(
            tuple(grid[replica, stage] for stage in range(form.pp)) for replica in range(form.dp)
        ),
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


def _stage(form: StageForm, update_share: float) -> StageProfile:
    message = (form.p2p_c2, form.p2p_c1, form.p2p_c0)
    return StageProfile(
        gpu_type=form.gpu_type,
        forward_s=form.fwd_s,
        backward_s=form.bwd_s,
        update_s=form.update_s_per_layer_profile,
        update_share=update_share,
        parameter_bytes=form.param_bytes_per_gpu,
        activation_bytes=form.send_act_bytes,
        next_stage=None if None in message else _bandwidth(*(float(c or 0.0) for c in message)),
        replica=_bandwidth(form.ar_c2, form.ar_c1, form.ar_c0),
    )


def _network(forms: Sequence[LinkForm]) -> NetworkProfile:
    """Links inside a node and between nodes of one zone; the first row of a kind counts.

    The runs do not say their zone. Rows of several zones differ little or not at all.
    """
    between: dict[tuple[str, str], dict[int, Bandwidth]] = defaultdict(dict)
    inside: dict[tuple[str, int], Bandwidth] = {}
    for form in forms:
        bandwidth = _bandwidth(form.c2, form.c1, form.c0)
        if form.scope == "same zone":
            between[form.src_gpu, form.dst_gpu].setdefault(form.gpus_per_side, bandwidth)
        elif form.scope == "intra node":
            inside.setdefault((form.src_gpu, form.gpus_per_side), bandwidth)
    return NetworkProfile(between=dict(between), inside=inside)


def _bandwidth(c2: float, c1: float, c0: float) -> Bandwidth:
    return Bandwidth(c2=c2 * _BYTES_PER_GB, c1=c1 * _BYTES_PER_GB, c0=c0 * _BYTES_PER_GB)
