"""Rehearse a launch on one machine: its runtime, over emulated links, against the prediction."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from des.base.atomic_write import write_together
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, parse, required
from des.base.lazy import lazy_imports
from des.base.text_files import read_text
from des.world.hosts import HOSTS, hosts_named
from scenarios.iteration.runtime_job import OPERATIONS, RUNTIME, read_runtime_job
from scenarios.rehearse.emulated_links import emulated_sites, require_emulation
from scenarios.rehearse.rank_processes import rank_processes

with lazy_imports(__name__):
    from des.figures import paper
    from scenarios.iteration import launch_folder, reference_launch
    from scenarios.rehearse import rehearsed_world, time_differences

if TYPE_CHECKING:
    from des.world.runtime import Receives
    from scenarios.iteration.runtime_job import RuntimeJob

PROG = "python -m scenarios.rehearse"
WARM_UP = 2
"""Steps before those that count: they open the windows of TCP."""

_PARTS = 4
"""Parts of the difference that are shown."""
_EXAMPLES = f"""\
examples:
  python -m scenarios.rehearse launch
      a launch of the reference runtime, ten times as fast, all receives first
  python -m scenarios.rehearse launch --receives stock --out rehearsal
      receives where torch posts them; writes rehearsal/rehearsal.png
  python -m scenarios.rehearse launch --scale 1 --iterations 10 --hosts linux_default
      at full length, on hosts as Linux comes

A process for each stage trains a small Llama, with messages of the plan's size over links of its
rates and latencies, all scaled. Needs root, /dev/net/tun, a C compiler and util-linux.

exit codes: 0 done; 2 a flag or a file is wrong, links cannot be emulated, or a process died;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of a rehearsal."""

    folder: Path = required("folder of launch files of the reference runtime", is_positional=True)
    out: Path | None = option(None, "folder for the picture", default_text="none is drawn")
    scale: float = option(0.1, "factor on all times of the plan")
    iterations: int = option(5, f"steps that count, after {WARM_UP} of warm-up")
    receives: str = option("first", "first: post all receives of a step first; stock: as torch")
    connections: int = option(
        0, "connections of each pair of ranks", default_text="2, or with stock receives 1"
    )
    hosts: str = option("linux_tuned", f"TCP of the hosts: {', '.join(HOSTS)}")
    link_gbit: float = option(0.25, "rate of the fastest link in Gbit/s; all are slowed down alike")
    compute: bool = option(False, "let passes take what they need instead of the plan's times")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    if config.receives not in OPERATIONS:
        raise UsageError(f"receives must be one of {', '.join(OPERATIONS)}; got {config.receives}")
    if config.iterations < 1:
        raise UsageError(f"iterations must be at least 1, got {config.iterations}")
    hosts_named(config.hosts)
    require_emulation()
    world = _world(config)
    job = read_runtime_job(read_text(config.folder / RUNTIME, "launch "))
    steps = _measured(config, world, job)
    predicted = world.predicted()
    times_s = [max(own["end_s"] for own in step) for step in steps]
    middle = times_s.index(statistics.median_low(times_s))
    found = time_differences.Comparison.of_records(predicted, steps[middle], job.stages_of_rank)
    sys.stdout.write("\n".join(_lines(config, world, found, times_s)) + "\n")
    DOCUMENT.add(
        predicted_s=predicted.makespan_s,
        measured_s=times_s,
        median_s=found.measured.makespan_s,
        parts={part.name: part.difference_s for part in found.parts()},
    )
    if config.out is not None:
        config.out.mkdir(parents=True, exist_ok=True)
        write_together({config.out / "rehearsal.png": paper.image_bytes(found.figure(), "png")})


def _world(config: Config) -> rehearsed_world.RehearsedWorld:
    names = launch_folder.PLAN, launch_folder.HOSTS, RUNTIME, *OPERATIONS.values()
    files = {name: read_text(config.folder / name, "launch ") for name in names}
    read = reference_launch.read_reference_launch(files)
    receives: Receives = "first" if config.receives == "first" else "stock"
    return rehearsed_world.RehearsedWorld(
        bound=replace(read.said, plan=read.plan),
        receives=receives,
        num_connections=config.connections or (2 if receives == "first" else 1),
        hosts=config.hosts,
        scale=config.scale,
        link_gbit=config.link_gbit,
    )


def _measured(
    config: Config, world: rehearsed_world.RehearsedWorld, job: RuntimeJob
) -> list[list[dict[str, Any]]]:
    """Records of all ranks for each step that counts."""
    domains = [domain for domain, _ in reference_launch.ranked_devices(world.bound)]
    flags = {
        "steps": WARM_UP + config.iterations,
        "receives": config.receives,
        "connections": world.num_connections,
        "every": 1,
        "layers": 0 if config.compute else 1,
        "passes": "computed" if config.compute else "slept",
        "scale": config.scale,
        "byte-scale": world.byte_scale,
    }
    words = [str(config.folder), "--is-started"]
    for name, value in flags.items():
        words += [f"--{name}", str(value)]
    names = [world.bound.topology.domains[domain].name for domain in domains]
    limit_s = 120.0 + 20.0 * config.scale * world.bound.step_s
    is_tuned = not hosts_named(config.hosts).restart_after_idle
    with (
        emulated_sites(world.topology, is_tuned=is_tuned) as sites,
        rank_processes(sites, domains, names, words) as ranks,
    ):
        ranks.documents(limit_s)
        steps = [ranks.step(limit_s) for _ in range(WARM_UP + config.iterations)]
    return steps[WARM_UP:]


def _lines(
    config: Config,
    world: rehearsed_world.RehearsedWorld,
    found: time_differences.Comparison,
    times_s: Sequence[float],
) -> list[str]:
    predicted_s, measured_s = found.predicted.makespan_s, found.measured.makespan_s
    rank, wait = found.last_rank, found.largest_wait()
    site = found.predicted.stages[
        next(stage for stage, one in found.rank_of_stage.items() if one == rank)
    ].domain
    return [
        f"rehearsed: {config.folder}, times x {config.scale:g}, links x {world.link_factor:.3g}, "
        f"receives {config.receives}, {world.num_connections} connections a pair, {config.hosts}",
        f"predicted {predicted_s:.4f} s, measured {measured_s:.4f} s (median of {len(times_s)}, "
        f"{min(times_s):.4f} to {max(times_s):.4f}), {measured_s / predicted_s - 1.0:+.1%}",
        f"difference at rank {rank} in {site}, whose passes end last [s]:",
        *(
            f"  {part.difference_s:+.4f}  {part.name} ({part.predicted_s:.4f} predicted)"
            for part in found.parts()[:_PARTS]
        ),
        f"largest wait: {wait.difference_s:+.4f} s for {wait.name}",
    ]
