"""Make a profile of layer times from tables of timed layers, or of whole iterations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calibration.commands.console import say
from des.base.atomic_write import write_atomically
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports
from des.job.models import MODEL_HELP, architecture_named
from des.worlds.reading import read_topology

with lazy_imports(__name__):
    from calibration.measured import (
        indexed_tables,
        kineto_trace,
        layer_tables,
        logged_runs,
        profile_table,
        runs,
        solved_layers,
    )
    from calibration.measurements import device_names
    from des.costs import profiled_times
    from des.job import transformer
    from des.world import layer_profiles
    from des.world.domain import Domain

EXAMPLES = """\
examples:
  python -m calibration profile --runs timed_layers.csv --out my_profile.csv
      medians of repeated measurements; then --profile my_profile.csv of scenarios.simulate
  python -m calibration profile --runs layer_profiles.csv --table-model OPT-350 \\
      --model opt_350m.yaml --sequence 2048
      layers by their index, as Sailor's profiler writes them
  python -m calibration profile --runs scenarios/reproduce/data/measured/vtrain_single.json
      layers of every size that whole iterations determine
  python -m calibration profile --runs run1.log,run2.log --network cluster.yaml
      the same of logs of Megatron-LM and torchtitan on a world of one domain
  python -m calibration profile --runs trace.json.gz --model llama2_7b --sequence 4096
      layers in a trace of PyTorch's profiler, and kernels that are in none

tables of layers are CSV files, those of iterations JSON files as `calibration kernels` reads them:
  timed layers   columns of a profile (docs/worlds.md) and repeat; rows of one point are repeats
  by index       model,gpu,mbs,tp,layer,fwd_s,bwd_s; layer 0 is the embedding, the last the head
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a profile."""

    runs: tuple[Path, ...] = option((), "tables of timed layers, or of whole iterations")
    gpu: tuple[str, ...] = option(
        (), "name of the GPU, or OLD=NEW for some with commas; none: as in the tables"
    )
    source: str | None = option(None, "origin of the times, a comment in the file")
    network: str | None = option(None, "world of one domain that logs ran on", is_file=True)
    model: str | None = option(
        None, f"model of a table by index: {MODEL_HELP}", default_text="none"
    )
    table_model: str | None = option(None, "its name in that table; none: the only one")
    sequence: int | None = option(
        None, "tokens of a sequence in that table or in a trace", default_text="none"
    )
    microbatch_size: int = option(1, "sequences of a microbatch in a trace")
    tensor: int = option(1, "GPUs that share a layer in a trace")
    exchanges: Literal["excluded", "included"] = option(
        "excluded", "whether times in that table include the sums over a tensor group"
    )
    out: Path = option(Path("runs/profile.csv"), "file of the profile")


def run(config: Config) -> None:
    """Read, take medians or solve, and write."""
    if not config.runs:
        raise UsageError("--runs must name at least one table of measured runs, got none")
    traces = [path for path in config.runs if kineto_trace.is_kineto(path)]
    others = [path for path in config.runs if path not in traces]
    of_iterations = [path for path in others if path.suffix.lower() == ".json"]
    solved = [solved_layers.solve_table(runs.read_runs(path)) for path in of_iterations]
    tables = [path for path in others if path.suffix.lower() == ".csv"]
    logs = [path for path in others if path not in (*of_iterations, *tables)]
    if logs:
        solved.append(solved_layers.solve_table(logged_runs.logged_table(logs, _domain(config))))
    points = [one.timed for table in solved for one in table.points]
    points += [_read_traced_point(path, config) for path in traces]
    if tables:
        points += layer_tables.medians([row for path in tables for row in _rows(path, config)])
    if config.gpu:
        points = profile_table.renamed(points, config.gpu)
    profile_table.require_single(points)
    num_rows = sum(one.num_rows for one in points)
    comments = [f"{len(points)} points from {num_rows} rows of {_names(config)}"]
    if solved:
        comments.append("solved from iterations: passes in the proportions of shapes, no head")
    if config.source is not None:
        comments.insert(0, f"source: {config.source}")
    content = profile_table.profile_csv(points, comments)
    config.out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(config.out, content)
    for line in (*profile_table.report_lines(points), *(one for t in solved for one in t.lines())):
        say(line)
    DOCUMENT.add(lines=list(profile_table.report_lines(points)), out=config.out)
    say(f"written: {config.out}")


def _names(config: Config) -> str:
    return ", ".join(path.name for path in config.runs)


def _read_traced_point(path: Path, config: Config) -> layer_tables.TimedPoint:
    """Point of a layer in a trace; the halves of its pass backward are as their FLOPs."""
    if config.model is None or config.sequence is None:
        raise UsageError(f"--model and --sequence must be given for {path}, a trace")
    times = kineto_trace.read_kineto(path)
    for line in times.lines():
        say(line)
    architecture = architecture_named(config.model)
    flops = transformer.layer_flops(
        architecture, batch_size=config.microbatch_size, sequence=config.sequence
    )
    weights_s = (
        times.backward_s * flops.weight_gradient / (flops.weight_gradient + flops.input_gradient)
    )
    return layer_tables.TimedPoint(
        gpu=device_names.kind_of_device(str(path), times.device),
        exchanges="excluded",
        point=layer_profiles.ProfilePoint(
            layer=profiled_times.name_layer(architecture, 0),
            tensor=config.tensor,
            microbatch_size=config.microbatch_size,
            sequence=config.sequence,
            forward_s=times.forward_s,
            input_gradient_s=times.backward_s - weights_s,
            weight_gradient_s=weights_s,
        ),
        num_rows=times.num_layers,
        spreads=None,
    )


def _domain(config: Config) -> Domain:
    """The cluster that logs are of."""
    if config.network is None:
        raise UsageError("--network must be given with logs, a world of one domain; got none")
    domains = read_topology(config.network).domains
    if len(domains) > 1:
        raise UsageError(f"--network {config.network}: must be of one domain, got {len(domains)}")
    return domains[0]


def _rows(path: Path, config: Config) -> list[layer_tables.TimedRow]:
    if not indexed_tables.is_indexed(path):
        return layer_tables.read_timed_rows(path)
    if config.model is None or config.sequence is None:
        raise UsageError(f"--model and --sequence must be given for {path}, layers by index")
    layers = indexed_tables.IndexedLayers(
        architecture=architecture_named(config.model),
        sequence=config.sequence,
        name=config.table_model,
        exchanges=config.exchanges,
    )
    return indexed_tables.read_indexed_rows(path, layers)
