"""Simulate the same placements at every level of detail, and compare the levels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from calibration import ReferenceRunError
from calibration.packet.process import ns3_version
from des import SCHEDULES, read_topology
from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import option, to_dict
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.base.speaking import SPEAKER
from des.job.models import MODEL_HELP, layers_note
from des.world.packet_transport import Congestion, Connections
from des.worlds.world_flags import ModelFlags, NetworkFlag
from scenarios.frame.outputs import OutputFlags, repetition_of, write_outputs
from scenarios.frame.run_folder import RunFolder

with lazy_imports(__name__):
    from calibration.cases import settings
    from calibration.cases.case import PlacementCase
    from scenarios.study.fidelity import fidelity_page, levels

PROG = "python -m scenarios.fidelity"
TRANSPORTS: tuple[str, ...] = get_args(Congestion)
_EXAMPLES = f"""\
examples:
  {PROG} --samples 24
  {PROG} --transports none --samples 100 --out runs/without_packets
  {PROG} --transports cubic --connections fresh --model llama2_70b

files written to --out, besides config.json:
  placements.csv  a row for each level and placement: iteration time, exposed communication
  levels.csv      a row for each level: means, error, Kendall tau and regret against the one before
  report.html     the same as a page, with CPU seconds

exit codes: 0 done; 2 a flag or a file is wrong, or a run gave no result; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ModelFlags, NetworkFlag, OutputFlags):
    """Flags of the comparison."""

    out: Path = option(Path("runs/fidelity"), "folder to make")
    model: str = option("llama2_7b", MODEL_HELP, is_file=True)
    microbatches: int = option(4, "microbatches of an iteration", check=require_count)
    schedules: tuple[str, ...] = option(("gpipe", "1f1b"), f"some of {', '.join(SCHEDULES)}")
    samples: int = option(24, "placements", check=require_count)
    seed: int = option(0, "seed of the placements", check=require_seed)
    transports: tuple[str, ...] | None = option(
        TRANSPORTS, f"levels of packets, some of {', '.join(TRANSPORTS)}; none: no packets"
    )
    connections: Connections = option("reused", "of the levels of packets")

    def __post_init__(self) -> None:
        for name in self.transports or ():
            if name not in TRANSPORTS:
                raise UsageError(
                    f"{PROG}: transports must be some of {', '.join(TRANSPORTS)}, got {name!r}"
                )
        if not self.schedules:
            raise UsageError(f"{PROG}: schedules must be at least one, got none")


@command(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    topology = read_topology(config.network)
    family = settings.WorkloadFamily(
        models=(config.model,),
        num_layers=config.num_layers,
        num_microbatches=(config.microbatches, config.microbatches),
        microbatch_sizes=(1,),
        sequence_lengths=(config.sequence_length,),
        schedules=config.schedules,
    )
    cases = levels.draw_shared_placements(topology, family, config.samples, config.seed)
    SPEAKER.note(layers_note(cases[0].workload))
    found, left_out = _levels(config)
    with RunFolder.created(config.out, to_dict(config)) as folder:
        try:
            results = _measure(found, cases)
        except ReferenceRunError as error:
            raise UsageError(str(error)) from error
        frame = levels.level_rows(cases, results)
        placements = levels.placement_rows(cases, results)
        page = fidelity_page.fidelity_report(
            frame,
            placements,
            cpu_s=levels.cpu_s_of(results),
            levels=found,
            caveats=(*left_out, f"{len(cases)} placements of one job on one world."),
            repeat=repetition_of(PROG, config),
        )
        rows = {"placements": placements, "levels": frame}
        write_outputs(folder.path, choice, page, rows)
    DOCUMENT.add(levels=frame, placements=placements, left_out=left_out, out=config.out)
    _show(page.tables[0].head, page.tables[0].rows)
    for line in (*levels.choices_kept(frame), *left_out, f"written: {config.out}"):
        sys.stdout.write(f"{line}\n")


def _levels(config: Config) -> tuple[tuple[levels.DetailLevel, ...], tuple[str, ...]]:
    """Levels to measure, and a sentence on those that are left out."""
    if config.transports is None:
        return levels.built_in_levels(), ()
    try:
        ns3_version()
    except ReferenceRunError as error:
        return levels.built_in_levels(), (f"levels of packets are left out: {error}",)
    packets = levels.packet_levels(
        [cast(Congestion, name) for name in config.transports], config.connections
    )
    return (*levels.built_in_levels(), *packets), ()


def _measure(found: Sequence[levels.DetailLevel], cases: Sequence[PlacementCase]) -> levels.Results:
    """Measure all placements level by level, a line on stderr for each."""
    results = {}
    for level in found:
        sys.stderr.write(f"level {level.name}: {counted(len(cases), 'placement')}\n")
        results[level.name] = [levels.measured_with_cpu_s(level, case) for case in cases]
    return results


def _show(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells) + "\n")
