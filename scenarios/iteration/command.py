"""Simulate one training iteration of a model, placed by hand on a world of domains and links."""

from __future__ import annotations

import sys
from collections.abc import Sequence, Set
from pathlib import Path

from calibration import ReferenceRunError
from des import NO_CORRECTIONS, IterationResult
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command_given
from des.base.document import DOCUMENT
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.engine.iteration import run_alone
from des.job.models import layers_note
from des.plan.plan_texts import PERFECT_DEVICES
from des.views.memory_timeline import MemoryTimeline, memory_timeline
from des.views.prices import notes_on_prices
from des.world.domain import layer_times_text
from des.world.site_limits import notes_on_sites
from scenarios.frame.outputs import OutputChoice, repeat_command, repeated_settings, write_files
from scenarios.frame.report import Repetition
from scenarios.iteration.iteration_config import PROG, Config
from scenarios.iteration.iteration_scenario import (
    IterationScenario,
    JobTimes,
    job_table,
    job_times,
    load_iteration,
    other_jobs,
)
from scenarios.iteration.iteration_tables import link_table, plain_console, stage_table

with lazy_imports(__name__):
    from rich import table as rich_table

    from agents.decision import plan_space, training_job, whole_plan
    from agents.planners.bounds import step_bound
    from calibration.packet import measure_packets
    from scenarios.iteration import (
        iteration_outputs,
        plan_file,
        trained_plan,
    )

_EXAMPLES = f"""\
examples:
  python -m scenarios.simulate
      Llama 2 70B in even parts on the default world: East, Central and West
  python -m scenarios.simulate --placement "0*28,1*26,2*26" --seed 7
      on links drawn once with seed 7, instead of links at their base figures
  python -m scenarios.simulate --model llama2_7b --placement "East*16,West*16" --schedule gpipe
  python -m scenarios.simulate --parallelism 4x1x2
      every domain is two devices in a row, each of four GPUs that divide its layers
  python -m scenarios.simulate --model llama2_7b --placement "0*32" --replicas "1*32;2*32"
      three replicas of the model, one in each domain
  python -m scenarios.simulate --model ./config.json --network cluster.yaml --profile layers.csv
      a model of Hugging Face on a cluster of your own, with times of its layers that were measured
  python -m scenarios.simulate --model llama2_7b --tokens-per-step 4Mi --microbatch-size 4
      a step of 4 x 2^20 tokens in 256 microbatches; --job FILE takes all of it from a JSON file
  python -m scenarios.simulate --model llama2_7b --placement "0*16,1*16" --bound
      and how far that is above a time that no plan can be below
  python -m scenarios.simulate --other-jobs "llama2_13b:0*20,1*20:1;llama2_7b:1*16,2*16"
      and how long it takes when its messages share the links with those of two other jobs, one of
      them of higher priority; GPUs and memory are not shared, other figures are of the job alone

  python -m scenarios.simulate --plan plan.json
      a complete plan, as `eastwest decide --json` writes it: its step time to the last bit
  python -m scenarios.simulate --plan train.sh --network sites.yaml --model llama2_7b --sites B,A
      a command line of Megatron-LM (or a plan of Sailor) on the sites of a world, in their order

With --trainer megatron a placement gets the quickest degrees and stages that Megatron-LM runs
with these layers in these domains. Else, without --parallelism, each domain counts as one perfect
device.

files written to --out:
  trace.json   timeline for chrome://tracing and https://ui.perfetto.dev
  report.html  question and answer, map of the sites, the timeline as a figure, links and memory
  map.png, gantt.png, links.png, memory.png   the same figures, with --figures png
  spans.csv, stages.csv, links.csv, memory_over_time.csv (--parquet: also as Parquet), result.json

exit codes: 0 done; 2 a flag, a file or the plan is wrong, or the files cannot be written;
  {EXIT_CODES}
"""


@command_given(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config, given: Set[str]) -> None:
    """Run the command on its settings."""
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)
    config, given = trained_plan.with_launch(config, given)
    config, rounding = trained_plan.with_job(config, given)
    config = trained_plan.with_trainer(config, given)
    read = _plan_read(config, given)
    scenario = load_iteration(config) if read is None else read.scenario
    SPEAKER.note(notes_on_sites(scenario.topology.domains, scenario.topology.links))
    SPEAKER.note(notes_on_prices(scenario.topology))
    SPEAKER.note(layers_note(scenario.workload))
    result = simulate_by_engine(config, scenario)
    network_cost = iteration_outputs.network_cost_of(scenario, result)
    memory = memory_timeline(scenario.program, result)
    times = job_times(scenario, result, other_jobs(config, scenario))
    bound = bound_line(config, scenario, result)
    said = iteration_outputs.iteration_summary(scenario, result, network_cost, memory, times)
    files = iteration_outputs.iteration_files(
        scenario,
        result,
        memory,
        said,
        choice=choice,
        repeat=Repetition(
            configuration=repeated_settings(config),
            command=repeat_command(PROG, trained_plan.as_given(config)),
        ),
    )
    paths = write_files(config.out, files)
    if rounding:
        sys.stdout.write(f"{rounding}\n")
    perfect = {} if scenario.plan.parallelism else {"devices": PERFECT_DEVICES}
    DOCUMENT.add(**said, **perfect, files=paths)
    show_iteration(scenario, result, network_cost, memory, paths, times=times)
    if read is not None:
        if config.json:
            DOCUMENT.add(plan=read.summary(result))
        sys.stdout.write(f"{read.sentence(result)}\n")
    if bound:
        sys.stdout.write(f"{bound}\n")


def _plan_read(config: Config, given: Set[str]) -> plan_file.FilePlan | None:
    """The plan of a file, or that of the flags completed for a trainer; None without either."""
    if config.plan is not None:
        return plan_file.read_plan_file(config.plan, config, given)
    if config.sites is not None:
        raise UsageError("sites needs a plan, got none")
    return None if config.trainer is None else trained_plan.trained_plan(config)


def show_iteration(
    scenario: IterationScenario,
    result: IterationResult,
    network_cost: iteration_outputs.NetworkCost,
    memory: MemoryTimeline,
    paths: Sequence[Path],
    *,
    times: Sequence[JobTimes],
) -> None:
    """Print the figures and where the files are."""
    console = plain_console(sys.stdout)
    console.print(iteration_outputs.title_of(scenario), style="bold", soft_wrap=True)
    console.print(_headline(scenario, result, network_cost, memory))
    if result.transfer_compute_ratio is not None:
        console.print("* mean wire time of an activation over a border / mean forward of a stage")
    console.print(stage_table(result))
    if result.transfers:
        console.print(link_table(result))
    if times:
        console.print(job_table(times, scenario.topology))
    if not scenario.plan.parallelism:
        console.print(PERFECT_DEVICES, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


def _headline(
    scenario: IterationScenario,
    result: IterationResult,
    network_cost: iteration_outputs.NetworkCost,
    memory: MemoryTimeline,
) -> rich_table.Table:
    tokens_per_s = scenario.workload.tokens_per_iteration / result.makespan_s
    ratio, fullest, cost = result.transfer_compute_ratio, memory.fullest, network_cost.cost
    table = rich_table.Table.grid(padding=(0, 2))
    for name, value in (
        ("iteration time", f"{result.makespan_s:.3f} s"),
        ("tokens per second", f"{tokens_per_s:.1f}"),
        ("utilisation of all GPUs", f"{result.utilisation:.3f}"),
        ("bubble fraction", f"{result.bubble_fraction:.3f}"),
        (
            "peak memory of a GPU",
            f"{fullest.peak_bytes / 1e9:.1f} of {fullest.capacity_bytes / 1e9:.1f} GB in "
            f"{fullest.domain}",
        ),
        ("communication cost", f"{result.communication_cost_bytes / 1e9:.3f} GB"),
        ("exposed communication", f"{network_cost.exposed_communication_s:.3f} s"),
        ("exposed sum of gradients", f"{result.exposed_exchange_s:.3f} s"),
        ("transfer/compute ratio", "no borders" if ratio is None else f"{ratio:.3f} *"),
        ("layer times from", layer_times_text(scenario.topology.domains)),
    ):
        table.add_row(name, value)
    if cost is not None:
        table.add_row("cost of the links", f"{cost.communication_usd:.4f} USD")
        table.add_row("cost of the GPUs", f"{cost.compute_usd:.4f} USD")
    return table


def simulate_by_engine(config: Config, scenario: IterationScenario) -> IterationResult:
    """Simulate an iteration on the network that the flags name.

    Raises
    ------
    UsageError
        If a network of packets cannot be had, or has no place for factors or other jobs.
    ValueError
        As `des.simulate`, and as `measure_packets.simulate_packets`.
    """
    topology, program = scenario.topology, scenario.program
    if config.network_engine == "des":
        return run_alone(topology, program, scenario.corrections).result()
    if scenario.corrections != NO_CORRECTIONS or config.other_jobs is not None:
        flag = "--other-jobs" if config.other_jobs is not None else "--corrections"
        raise UsageError(f"{PROG}: --network-engine ns3 must come without {flag}")
    try:
        return measure_packets.simulate_packets(topology, program)
    except ReferenceRunError as error:
        raise UsageError(str(error)) from error


def bound_line(config: Config, scenario: IterationScenario, result: IterationResult) -> str:
    """Return a sentence with the bound, empty where none is wanted.

    Raises
    ------
    UsageError
        If the plan is none of those that the bound is about.
    ValueError
        If there is no bound for the network or the workload.
    """
    if not config.bound:
        return ""
    plan = scenario.plan
    for flag, is_other in (
        ("parallelism", bool(plan.parallelism)),
        ("activation-compression", plan.activation_compression > 1.0),
        ("synchronisation", plan.synchronisation.steps_between > 1),
        ("recomputation", config.recomputation != "flash"),
    ):
        if is_other:
            raise UsageError(f"{flag} must be the default with --bound, got another")
    size = config.microbatch_size or 1
    problem = whole_plan.WholeProblem(
        topology=scenario.topology,
        job=training_job.TrainingJob.of(scenario.workload, microbatch_size=size),
        space=plan_space.PlanSpace(
            microbatch_sizes=tuple(sorted({size, *plan_space.PlanSpace().microbatch_sizes}))
        ),
        corrections=scenario.corrections,
    )
    bound = step_bound.step_lower_bound_s(problem)
    above = result.makespan_s / bound.step_s - 1.0
    return (
        f"no plan is below {bound.step_s:.4g} s, which {bound.binds} binds (all GPUs at work and "
        f"nothing sent: {bound.work_s:.4g} s); this one is {above:.1%} above it"
    )
