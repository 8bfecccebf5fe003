"""Compare rules of placement on one server: exact ones, greedy, first fit and random."""

from dataclasses import dataclass, fields
from pathlib import Path

from des.base.checks import require_count, require_seed
from des.base.csv_text import csv_text
from des.base.flags import option, required
from des.base.lazy import lazy_imports
from scenarios.devices.placement_flags import (
    PlacedServerFlags,
    aligned,
    comma_separated,
    milliseconds,
    mix_of,
    note_on_times,
    placed_server_of,
    tell,
)

with lazy_imports(__name__):
    from agents.devices import placement_rules
    from des.figures import paper
    from scenarios.devices import pictures
    from scenarios.frame import outputs

EXAMPLES = """\
examples:
  python -m scenarios.devices compare --file topo.txt --gpus 4
  python -m scenarios.devices compare --file topo.txt --gpus 4 --free 0,2,3,4,5,7 --out compared
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(PlacedServerFlags):
    """Flags of a comparison."""

    gpus: int = required("GPUs of the job")
    free: tuple[int, ...] | None = option(
        None, "numbers of the GPUs that others have not taken", default_text="all"
    )
    seed: int = option(0, "seed of the random placements", check=require_seed)
    draws: int = option(100, "random placements, of which means are shown", check=require_count)
    mix: tuple[str, ...] = option(
        ("1", "2", "4", "8"), "next jobs, which fragmentation is measured by: GPUs or GPUs:WEIGHT"
    )
    payload_bytes: float = option(100e6, "buffer of the all-reduce [bytes]")
    out: Path | None = option(None, "folder for table.csv and picture.png")
    json: bool = option(False, "print JSON, and nothing else")


def run(config: Config) -> None:
    """Place the job by each rule and print the figures."""
    server = placed_server_of(config)
    case = placement_rules.RulesCase(
        server=server,
        num_gpus=config.gpus,
        free=config.free,
        mix=mix_of(config.mix),
        payload_bytes=config.payload_bytes,
    )
    found = placement_rules.compare_rules(case, seed=config.seed, num_draws=config.draws)
    title = f"{config.gpus} GPU{'s' if config.gpus > 1 else ''} of {server.name}"
    text = f"{title}\n{_table(found, config.draws)}{note_on_times(server)}"
    tell(found if config.json else text)
    if config.out is not None:
        files = {
            "table.csv": _csv(found).encode(),
            "picture.png": paper.image_bytes(pictures.rules_figure(found, title)),
        }
        outputs.write_files(config.out, files)


def _table(found: "list[placement_rules.RuleOutcome]", num_draws: int) -> str:
    heads = ("rule", "GPUs", "NVLinks", "distances", "all-reduce [ms]", "fragmentation")
    rows = [
        (
            each.rule,
            f"mean of {num_draws}" if each.gpus is None else comma_separated(each.gpus),
            f"{each.nvlinks:g}",
            f"{each.distances:g}",
            milliseconds(each.all_reduce_s),
            f"{each.fragmentation_fraction:.3f}",
        )
        for each in found
    ]
    return aligned([heads, *rows])


def _csv(found: "list[placement_rules.RuleOutcome]") -> str:
    heads = [field.name for field in fields(found[0])]
    rows = ([_cell(getattr(each, head)) for head in heads] for each in found)
    return csv_text([heads, *rows])


def _cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value
