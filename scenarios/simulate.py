"""Simulate one training iteration of a model, placed by hand on a world of domains and links."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from calibration.corrections_file import read_corrections
from des import (
    ALIASES,
    ARCHITECTURES,
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    SCHEDULES,
    Corrections,
    IterationResult,
    Placement,
    Plan,
    Topology,
    Workload,
    build_workload,
    check_memory,
    cross_domain_bytes,
    read_topology,
    simulate,
)
from des.atomic_write import write_together
from des.chrome_trace import chrome_trace_json
from des.gantt import gantt_png
from scenarios.command import UsageError, exit_code_of
from scenarios.config import option, parse
from scenarios.iteration_tables import link_table, plain_console, stage_table

PROG = "python -m scenarios.simulate"
_EXAMPLES = """\
examples:
  python -m scenarios.simulate
      Llama 2 70B in even parts on the default world: East, Central and West
  python -m scenarios.simulate --placement "0*28,1*26,2*26" --seed 7
      on links drawn once with seed 7, instead of links at their base figures
  python -m scenarios.simulate --model llama2_7b --placement "East*16,West*16" --schedule gpipe

files written to --out:
  trace.json   timeline for chrome://tracing and https://ui.perfetto.dev
  gantt.png    the same as a figure
  spans.csv, stages.csv, links.csv, result.json

exit codes: 0 done; 2 a flag, a file or the plan is wrong, or the files cannot be written
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is simulated; the fields are the flags."""

    network: str = option("east_central_west", "topology file, or a shipped world", is_file=True)
    model: str = option("llama2_70b", f"one of {', '.join([*ARCHITECTURES, *ALIASES])}")
    num_layers: int | None = option(None, "divide the model into that many equal layers")
    placement: str | None = option(
        None,
        "domain, by number or name, times layers, such as 0*28,1*26,2*26; "
        "none: even parts over all domains in order",
    )
    schedule: str = option(DEFAULT_SCHEDULE, f"one of {', '.join(SCHEDULES)}")
    microbatches: int = option(32, "microbatches of an iteration")
    microbatch_size: int = option(1, "sequences of a microbatch")
    sequence_length: int = option(4096, "tokens of a sequence")
    corrections: Path | None = option(
        None, "factors found by calibration, a JSON file", is_file=True
    )
    seed: int | None = option(
        None, "draw one epoch of the moving links; none: they stand at their base figures"
    )
    out: Path = option(Path("runs/simulate"), "folder for the files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What the files and names of a `Config` stand for."""

    topology: Topology
    workload: Workload
    plan: Plan
    corrections: Corrections
    seed: int | None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    scenario = load_scenario(config)
    result = simulate(scenario.topology, scenario.workload, scenario.plan, scenario.corrections)
    paths = write_files(config.out, output_files(scenario, result))
    show(scenario, result, paths)


def load_scenario(config: Config) -> Scenario:
    """Read the files, draw the links and check the plan.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or the plan does not fit into the memory.
    """
    topology = read_topology(config.network)
    if config.seed is not None and config.seed < 0:
        raise UsageError(f"{PROG}: seed must be at least 0, got {config.seed}")
    if config.seed is not None:
        topology = topology.draw_epoch(np.random.default_rng(config.seed))
    workload = build_workload(
        config.model,
        num_layers=config.num_layers,
        num_microbatches=config.microbatches,
        microbatch_size=config.microbatch_size,
        sequence_length=config.sequence_length,
    )
    if config.placement is None:
        placement = Placement.even(topology.num_domains, workload.num_layers)
    else:
        placement = Placement.parse(config.placement, list(topology.index_of))
    placement.check_against(topology, workload)
    plan = Plan(placement=placement, schedule=config.schedule)
    check_memory(topology, workload, plan)
    path = config.corrections
    return Scenario(
        topology=topology,
        workload=workload,
        plan=plan,
        corrections=NO_CORRECTIONS if path is None else read_corrections(path),
        seed=config.seed,
    )


def summary(scenario: Scenario, result: IterationResult) -> dict[str, object]:
    """Return the content of result.json: what was simulated and its figures."""
    return {
        "model": scenario.workload.name,
        "num_layers": scenario.workload.num_layers,
        "num_microbatches": scenario.workload.num_microbatches,
        "tokens_per_microbatch": scenario.workload.tokens_per_microbatch,
        "schedule": scenario.plan.schedule,
        "placement": list(scenario.plan.placement.domain_of_layer),
        "domains": list(scenario.topology.index_of),
        "seed": scenario.seed,
        "corrections": asdict(scenario.corrections),
        "makespan_s": result.makespan_s,
        "tokens_per_s": scenario.workload.tokens_per_iteration / result.makespan_s,
        "utilisation": result.utilisation,
        "bubble_fraction": result.bubble_fraction,
        "communication_cost_bytes": result.communication_cost_bytes,
        "transfer_compute_ratio": result.transfer_compute_ratio,
        "cross_domain_bytes": cross_domain_bytes(scenario.workload, scenario.plan.placement),
        "memory": [asdict(memory) for memory in result.memory],
    }


def output_files(scenario: Scenario, result: IterationResult) -> dict[str, bytes]:
    """Make the content of all files; it depends on the scenario alone, not on where it was."""
    stages = result.to_frame("stages")
    stages.insert(0, "stage", range(len(stages)))
    text = {
        "spans.csv": result.to_frame("spans").to_csv(index=False, lineterminator="\n"),
        "stages.csv": stages.to_csv(index=False, lineterminator="\n"),
        "links.csv": result.to_frame("links").to_csv(index=False, lineterminator="\n"),
        "result.json": json.dumps(summary(scenario, result), indent=2, allow_nan=False) + "\n",
    }
    return {
        "trace.json": chrome_trace_json(result),
        "gantt.png": gantt_png(result, title=_title(scenario)),
        **{name: content.encode() for name, content in text.items()},
    }


def write_files(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write all files or none and return where they are.

    Raises
    ------
    ValueError
        If the folder cannot be made or written.
    """
    if (folder / "config.json").exists():
        raise ValueError(f"--out {folder}: must not be the folder of a training run")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_together({folder / name: content for name, content in files.items()})
    except OSError as error:
        raise ValueError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return [folder / name for name in files]


def show(scenario: Scenario, result: IterationResult, paths: Sequence[Path]) -> None:
    """Print the figures and where the files are."""
    console = plain_console(sys.stdout)
    console.print(_title(scenario), style="bold", soft_wrap=True)
    tokens_per_s = scenario.workload.tokens_per_iteration / result.makespan_s
    ratio = result.transfer_compute_ratio
    headline = Table.grid(padding=(0, 2))
    for name, value in (
        ("iteration time", f"{result.makespan_s:.3f} s"),
        ("tokens per second", f"{tokens_per_s:.1f}"),
        ("utilisation of all GPUs", f"{result.utilisation:.3f}"),
        ("bubble fraction", f"{result.bubble_fraction:.3f}"),
        ("communication cost", f"{result.communication_cost_bytes / 1e9:.3f} GB"),
        ("transfer/compute ratio", "no borders" if ratio is None else f"{ratio:.3f} *"),
    ):
        headline.add_row(name, value)
    console.print(headline)
    if ratio is not None:
        console.print("* mean wire time of an activation over a border / mean forward of a stage")
    console.print(stage_table(result))
    if result.transfers:
        console.print(link_table(result))
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


def _title(scenario: Scenario) -> str:
    workload = scenario.workload
    return (
        f"{workload.name}, {workload.num_layers} layers, {workload.num_microbatches} microbatches, "
        f"{scenario.plan.schedule}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
