"""Other jobs on the links of a simulated iteration: what sharing costs each of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.table import Table

from des import (
    ConcurrentJob,
    IterationResult,
    Placement,
    Plan,
    Topology,
    build_workload,
    check_memory,
    simulate,
    simulate_together,
)
from des.base.command import UsageError
from scenarios.iteration.iteration_config import OTHER_JOBS_FORM, Config
from scenarios.iteration.iteration_scenario import IterationScenario
from scenarios.iteration.iteration_tables import add_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTimes:
    """Iteration time of a job that has the links to itself, and of the same job among others."""

    model: str
    placement: tuple[int, ...]
    priority: int
    alone_s: float
    together_s: float


def other_jobs(config: Config, scenario: IterationScenario) -> tuple[ConcurrentJob, ...]:
    """Read the jobs that run on the same links; what is not said of them is as in the first job.

    Raises
    ------
    UsageError
        If one is not ``model:placement[:priority]``, names a model or placement that is wrong, or
        does not fit into the memory.
    """
    if config.other_jobs is None:
        return ()
    return tuple(
        _job(text.strip(), config, scenario.topology, scenario.plan)
        for text in config.other_jobs.split(";")
    )


def _job(text: str, config: Config, topology: Topology, first: Plan) -> ConcurrentJob:
    model, placement, priority = _parts(text)
    try:
        workload = build_workload(
            model,
            num_microbatches=config.microbatches,
            microbatch_size=config.microbatch_size or 1,
            sequence_length=config.sequence_length,
            recomputation=config.recomputation,
            attention=config.attention,
            precision=config.precision,
            gradient_precision=config.gradient_precision,
        )
        parsed = Placement.parse(placement, list(topology.index_of))
        plan = replace(first, placement=parsed, replicas=(), shares=())
        plan.check_against(topology, workload)
        check_memory(topology, workload, plan)
    except ValueError as error:
        raise UsageError(f"other-jobs: {text}: {error}") from error
    return ConcurrentJob(workload=workload, plan=plan, priority=priority)


def _parts(text: str) -> tuple[str, str, int]:
    """Take a job apart; without a priority it has that of the first job, which is 0."""
    found = re.fullmatch(r"([^:]+):([^:]+)(?::([+-]?\d{1,9}))?", text)
    if found is None:
        raise UsageError(f"other-jobs must be {OTHER_JOBS_FORM}; got {text!r}")
    model, placement, priority = found.groups(default="0")
    return model, placement, int(priority)


def job_times(
    scenario: IterationScenario, alone: IterationResult, others: tuple[ConcurrentJob, ...]
) -> tuple[JobTimes, ...]:
    """Simulate each job alone and all of them together, the first job first; none without others.

    Raises
    ------
    ValueError
        If priorities differ where messages do not wait for each other.
    """
    if not others:
        return ()
    topology, corrections = scenario.topology, scenario.corrections
    jobs = (ConcurrentJob(workload=scenario.workload, plan=scenario.plan), *others)
    together = simulate_together(topology, jobs, corrections)
    alone_s = [
        alone.makespan_s,
        *(simulate(topology, job.workload, job.plan, corrections).makespan_s for job in others),
    ]
    return tuple(
        JobTimes(
            model=job.workload.name,
            placement=job.plan.placement.domain_of_layer,
            priority=job.priority,
            alone_s=each_s,
            together_s=result.makespan_s,
        )
        for job, each_s, result in zip(jobs, alone_s, together, strict=True)
    )


def job_table(times: Sequence[JobTimes], topology: Topology) -> Table:
    """Table of the jobs: iteration times alone and together."""
    names = list(topology.index_of)
    table = Table(
        title="Jobs on the same links (iteration times; the first job is the one above)",
        title_justify="left",
    )
    add_columns(table, "job", "priority", "alone s", "together s", "slower by")
    for one in times:
        domains = ", ".join(names[domain] for domain in dict.fromkeys(one.placement))
        table.add_row(
            f"{one.model} in {domains}",
            str(one.priority),
            f"{one.alone_s:.3f}",
            f"{one.together_s:.3f}",
            f"{one.together_s / one.alone_s - 1:.1%}",
        )
    return table
