"""Make a profile of layer times from tables of timed layers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from calibration.commands.console import say
from des.base.atomic_write import write_atomically
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy
from des.job.models import MODEL_HELP, architecture_named

if TYPE_CHECKING:
    from calibration.measured import indexed_tables, layer_tables, profile_table
else:
    indexed_tables = lazy("calibration.measured.indexed_tables")
    layer_tables = lazy("calibration.measured.layer_tables")
    profile_table = lazy("calibration.measured.profile_table")

EXAMPLES = """\
examples:
  python -m calibration profile --runs timed_layers.csv --out my_profile.csv
      medians of repeated measurements; then --profile my_profile.csv of scenarios.simulate
  python -m calibration profile --runs layer_profiles.csv --table-model OPT-350 \\
      --model opt_350m.yaml --sequence 2048
      layers by their index, as Sailor's profiler writes them

tables are CSV files:
  timed layers   columns of a profile (docs/worlds.md) and repeat; rows of one point are repeats
  by index       model,gpu,mbs,tp,layer,fwd_s,bwd_s; layer 0 is the embedding, the last the head
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of a profile; the fields are the flags."""

    runs: tuple[Path, ...] = option((), "tables of timed layers")
    gpu: tuple[str, ...] = option(
        (), "name of the GPU, or OLD=NEW for some with commas; none: as in the tables"
    )
    source: str | None = option(None, "origin of the times, a comment in the file")
    model: str | None = option(
        None, f"model of a table by index: {MODEL_HELP}", default_text="none"
    )
    table_model: str | None = option(None, "its name in that table; none: the only one")
    sequence: int | None = option(None, "tokens of a sequence in that table", default_text="none")
    exchanges: Literal["excluded", "included"] = option(
        "excluded", "whether times in that table include the sums over a tensor group"
    )
    out: Path = option(Path("runs/profile.csv"), "file of the profile")


def run(config: Config) -> int:
    """Read, take medians and write."""
    if not config.runs:
        raise UsageError("--runs must name at least one table of timed layers, got none")
    rows = [row for path in config.runs for row in _rows(path, config)]
    points = layer_tables.medians(rows)
    if config.gpu:
        points = profile_table.renamed(points, config.gpu)
    comments = [f"{len(points)} points from {len(rows)} rows of {_names(config)}"]
    if config.source is not None:
        comments.insert(0, f"source: {config.source}")
    content = profile_table.profile_csv(points, comments)
    config.out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(config.out, content)
    for line in profile_table.report_lines(points):
        say(line)
    say(f"written: {config.out}")
    return 0


def _names(config: Config) -> str:
    return ", ".join(path.name for path in config.runs)


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
