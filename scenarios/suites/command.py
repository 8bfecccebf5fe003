"""List the worlds of a suite, and write their topologies."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from des.base.checks import require_known
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.csv_text import frame_csv
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, required
from des.base.help_text import terminal_width
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.world.transfer_ratio import mean_bandwidth_bytes_per_s
from scenarios.frame.outputs import write_files
from scenarios.suites.catalogue import NAMES, SUITES
from scenarios.suites.world import SuiteWorld

with lazy_imports(__name__):
    import pandas as pd

    from des.world.files import topology_writer


INDEX_CSV = "index.csv"
"""One row per world: all of it that its topology file does not hold."""


def suite_index(worlds: Sequence[SuiteWorld]) -> pd.DataFrame:
    """Return one row per world, in SI units."""
    return pd.DataFrame([_row(world) for world in worlds])


def suite_table(worlds: Sequence[SuiteWorld]) -> str:
    """Return a table for the terminal, one line per world."""
    frame = suite_index(worlds)
    shown = pd.DataFrame(
        {
            "world": frame["world"],
            "K": frame["num_domains"],
            "model": frame["model"],
            "M": frame["num_microbatches"],
            "ktokens": [f"{tokens / 1e3:.0f}" for tokens in frame["tokens_per_step"]],
            "R": [f"{ratio:.3g}" for ratio in frame["ratio"]],
            "Gbit/s": [f"{rate * 8 / 1e9:.2f}" for rate in frame["mean_bandwidth_bytes_per_s"]],
            "PFLOP/s": [f"{speed / 1e15:.2f}" for speed in frame["domain_flops_per_s"]],
            "GPUs": [_range(_gpus(world)) for world in worlds],
            "GB/GPU": [
                _range(domain.gpu_memory_bytes / 1e9 for domain in world.topology.domains)
                for world in worlds
            ],
            "law": frame["law"],
            "load held": frame["dwell_epochs"],
            "epoch": [f"{length_s / 60:g} min" for length_s in frame["epoch_s"]],
            "iterations": frame["iterations_per_epoch"],
            "price": [_price(pays_bytes) for pays_bytes in frame["pays_bytes"]],
        }
    )
    return shown.to_string(index=False, line_width=terminal_width())


def suite_summary(worlds: Sequence[SuiteWorld]) -> str:
    """Return one line: how many worlds, and the ranges of their figures."""
    frame = suite_index(worlds)
    return (
        f"{counted(len(frame), 'world')} of {frame['suite'][0]}: "
        f"K {_range(frame['num_domains'])}, R {_range(frame['ratio'])}, "
        f"M {_range(frame['num_microbatches'])}, "
        f"{_range(frame['tokens_per_step'] / 1e6)} million tokens a step, "
        f"{_range(frame['epoch_s'] / 60)} min an epoch, "
        f"{_range(frame['iterations_per_epoch'])} iterations each, "
        f"epochs {_range(frame['num_epochs'])}; "
        f"{' and '.join(sorted({_price(one) for one in frame['pays_bytes']}))}; "
        f"links {', '.join(sorted(set(frame['law'])))}"
    )


def files_of(worlds: Sequence[SuiteWorld], *, command: str) -> dict[str, bytes]:
    """Return the content of all files: a topology for each world, and the index.

    ``command`` is what writes them again.
    """
    files = {
        _file_of(world): topology_writer.to_yaml(
            world.topology,
            comment=f"World {world.name}; made up, not measured. Written by:\n{command}",
        ).encode()
        for world in worlds
    }
    index = frame_csv(suite_index(worlds))
    return files | {INDEX_CSV: index.encode()}


def _row(world: SuiteWorld) -> dict[str, str | int | float | bool]:
    domains = world.topology.domains
    return {
        "world": world.name,
        "suite": world.suite,
        "seed": world.seed,
        "index": world.index,
        "topology_file": _file_of(world),
        "num_domains": world.num_domains,
        "num_gpus": sum(_gpus(world)),
        "model": world.workload.name,
        "num_layers": world.workload.num_layers,
        "num_microbatches": world.workload.num_microbatches,
        "tokens_per_step": world.workload.tokens_per_iteration,
        "ratio": world.ratio,
        "target_ratio": world.target_ratio,
        "mean_bandwidth_bytes_per_s": mean_bandwidth_bytes_per_s(world.topology),
        "domain_flops_per_s": fmean(domain.attainable_flops_per_s for domain in domains),
        "gpu_memory_bytes": min(domain.gpu_memory_bytes for domain in domains),
        "law": world.law,
        "load_low_factor": world.load.low_factor,
        "load_high_factor": world.load.high_factor,
        "dwell_epochs": world.load.dwell_epochs,
        "epoch_s": world.epoch_s,
        "num_epochs": world.num_epochs,
        "iterations_per_epoch": world.iterations_per_epoch,
        "schedule": world.schedule,
        "restart_s": world.replacement.restart_s,
        "pays_bytes": world.replacement.pays_bytes,
        "digest": world.digest,
    }


def _gpus(world: SuiteWorld) -> list[int]:
    return [domain.num_gpus for domain in world.topology.domains]


def _file_of(world: SuiteWorld) -> str:
    return f"{world.name}.yaml"


def _price(pays_bytes: bool) -> str:
    return "bytes" if pays_bytes else "restart"


def _range(values: Iterable[float]) -> str:
    each = list(values)
    listed = [f"{value:.3g}" for value in (min(each), max(each))]
    return "-".join(dict.fromkeys(listed))


PROG = "python -m scenarios.suites"
_WIDTH = max(map(len, NAMES))
_SUITES = "\n".join(f"  {name:{_WIDTH}}  {one.about}" for name, one in SUITES.items())
_EXAMPLES = f"""\
suites:
{_SUITES}

examples:
  {PROG} hard
  {PROG} eval_static --num 20 --seed 1 --out eval_static

columns:
  K domains, M microbatches, thousands of tokens a step, R transfer/compute ratio at base figures;
  Gbit/s mean of the links; PFLOP/s that a domain attains on average; GPUs of a domain; epochs
  for which the load is held; iterations of an epoch; price of a move: bytes and a restart, or a
  restart alone

files written to --out:
  {INDEX_CSV}             one row per world: its job, load, epochs and price, in SI units
  NAME-SEED-INDEX.yaml  its topology with the law of its links

exit codes: 0 done; 2 the name or a flag is wrong, or the files cannot be written;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a list of suites."""

    name: str = required(f"suite, one of {', '.join(NAMES)}", is_positional=True)
    num: int = option(20, "number of worlds, from the first one on")
    seed: int = option(0, "seed of the worlds")
    out: Path | None = option(None, "new or empty folder for the files; none: nothing is written")


@command(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config) -> None:
    """Run the command on its settings."""
    name = config.name
    require_known(f"{PROG}: unknown suite", name, NAMES, UsageError)
    if config.out is not None:
        _check_empty(config.out)
    worlds = SUITES[name].worlds(config.num, config.seed)
    written: list[Path] = []
    if config.out is not None:
        command = f"{PROG} {name} --num {config.num} --seed {config.seed} --out DIR"
        written = write_files(config.out, files_of(worlds, command=command))
    DOCUMENT.add(worlds=suite_index(worlds), files=written)
    sys.stdout.write(f"{suite_table(worlds)}\n{suite_summary(worlds)}\n")
    if config.out is not None:
        sys.stdout.write(f"written: {config.out} ({len(written)} files)\n")


def _check_empty(folder: Path) -> None:
    """Refuse a folder with files: an index names all topologies in its folder."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"--out {folder}: must be a new or empty folder, got one with files")
