"""Placement of a job on several servers, from a file that lists them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from agents.devices.free_gpus import FreeGpus
from agents.devices.training_figures import TrainingAssumptions
from agents.devices.training_placement import TrainingPlacement, optimise_placement
from des.base.strict_forms import StrictForm, first_error
from des.base.text_files import read_yaml
from des.plan.parallelism import Parallelism
from scenarios.devices.job_flags import JobFlags
from scenarios.devices.placement_flags import aligned, listed, milliseconds, plain_value
from scenarios.devices.sources import ServerFlags, server_of


class _ServerForm(StrictForm):
    """One server: a file or a kind, the free GPUs (default: all), and where it is."""

    name: str
    file: str | None = None
    simulate: str | None = None
    free: list[int] | None = None
    levels: list[str] = Field(default_factory=list)


class _ServersForm(StrictForm):
    servers: list[_ServerForm]


def run(path: Path, flags: JobFlags, mix: Mapping[int, float]) -> int:
    """Place the job and print servers, GPUs and predicted times."""
    assumed = TrainingAssumptions(
        model=flags.model,
        gpu=flags.gpu,
        parallelism=None if flags.parallelism is None else Parallelism.parse(flags.parallelism),
        cards_per_server=flags.cards_per_server,
        card_bandwidth_bytes_per_s=flags.card_bandwidth_bytes_per_s,
    )
    found = optimise_placement(
        read_servers(path),
        flags.gpus,
        flags.gpus_per_node,
        communication_heavy=flags.communication_heavy,
        data_locality=flags.data_locality,
        mix=mix,
        assumed=assumed,
    )
    if flags.json:
        sys.stdout.write(f"{json.dumps(plain_value(found))}\n")
    else:
        sys.stdout.write(_text(found, assumed))
    return 0


def read_servers(path: Path) -> list[FreeGpus]:
    """Read servers and their free GPUs; files are looked for next to the list.

    Raises
    ------
    ValueError
        If the file, or that of a server, is wrong.
    """
    try:
        listed_servers = _ServersForm.model_validate(read_yaml(path)).servers
    except ValidationError as error:
        raise ValueError(f"{path}: {first_error(error)}") from error
    return [_free_gpus(path, each) for each in listed_servers]


def _free_gpus(path: Path, form: _ServerForm) -> FreeGpus:
    if (form.file is None) == (form.simulate is None):
        raise ValueError(f"{path}: server {form.name}: one of file and simulate must be given")
    files = () if form.file is None else (path.parent / form.file,)
    server = server_of(ServerFlags(file=files, simulate=form.simulate))
    numbers = [gpu.number for gpu in server.gpus] if form.free is None else form.free
    return FreeGpus(
        name=form.name, server=server, numbers=tuple(numbers), levels=tuple(form.levels)
    )


def _text(found: TrainingPlacement, assumed: TrainingAssumptions) -> str:
    rows = [("server", "GPUs"), *zip(found.servers, map(listed, found.gpus), strict=True)]
    fits = "" if found.fits_memory else " (does not fit into memory)"
    figures = [
        ("shared levels", " / ".join(found.shared_levels) or "none"),
        ("quality", f"{found.quality:.3f}"),
        ("all-reduce of 100 MB [ms]", milliseconds(found.all_reduce_s)),
        (f"iteration of {assumed.model} [s]", f"{found.iteration_s:.3f}{fits}"),
        ("fragmentation afterwards", f"{found.fragmentation_fraction:.3f}"),
    ]
    return f"{found.why}\n{aligned(rows)}\n{aligned(figures)}"
