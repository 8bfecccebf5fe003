"""Scenario of one simulated iteration: world, workload and plan of its flags, and other jobs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from rich.table import Table

from calibration.fit.fitted_for import FittedFor
from des import (
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    ConcurrentJob,
    Corrections,
    GradientExchange,
    IterationResult,
    Parallelism,
    Placement,
    Plan,
    Replay,
    Topology,
    Workload,
    build_workload,
    check_memory,
    lower,
    simulate,
    simulate_together,
)
from des.base.checks import prefixed_errors
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.plan.shares import parse_counts
from des.program.program import Program
from scenarios.iteration.iteration_config import OTHER_JOBS_FORM, Config
from scenarios.iteration.iteration_tables import add_columns

with lazy_imports(__name__):
    from calibration.fit import corrections_file


@dataclass(frozen=True, kw_only=True)
class IterationScenario:
    """Objects named by the files and names of a `Config`."""

    topology: Topology
    workload: Workload
    plan: Plan
    corrections: Corrections
    seed: int | None

    @cached_property
    def program(self) -> Program:
        """Operations of the iteration, which engines run and views read."""
        return lower(self.topology, self.workload, self.plan, self.corrections)


def load_iteration(config: Config) -> IterationScenario:
    """Read the files, draw the links and check the plan.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or the plan does not fit into the memory.
    """
    scenario = given_iteration(config)
    check_memory(scenario.topology, scenario.workload, scenario.plan)
    return scenario


def given_iteration(config: Config) -> IterationScenario:
    """Read the files and draw the links."""
    base, topology = iteration_world(config)
    workload = config.workload(
        config.microbatches,
        config.microbatch_size,
        recomputation=config.recomputation,
        attention=config.attention,
        gradient_precision=config.gradient_precision,
    )
    fitted_for = FittedFor.of(workload, base, network=str(config.network))
    path = config.corrections
    return IterationScenario(
        topology=topology,
        workload=workload,
        plan=_plan(config, topology, workload),
        corrections=NO_CORRECTIONS
        if path is None
        else corrections_file.read_corrections(path, used_for=fitted_for),
        seed=config.seed,
    )


def iteration_world(config: Config) -> tuple[Topology, Topology]:
    """Read the world as it is written, and as it is in the iteration.

    Raises
    ------
    ValueError
        If a file or a flag is wrong.
    """
    base = config.world(config.network)
    if config.seed is not None and config.seed < 0:
        raise UsageError(f"seed must be at least 0, got {config.seed}")
    if config.seed is None and not isinstance(base.dynamics, Replay):  # a replay has no luck
        return base, base
    return base, base.draw_epoch(np.random.default_rng(config.seed or 0))


def _plan(config: Config, topology: Topology, workload: Workload) -> Plan:
    names = list(topology.index_of)
    if config.placement is None:
        placement = Placement.even(topology.num_domains, workload.num_layers)
    else:
        placement = Placement.parse(config.placement, names)
    replicas = [] if config.replicas is None else config.replicas.split(";")
    bucket_mb = config.gradient_bucket_mb
    return Plan(
        placement=placement,
        schedule=config.schedule or DEFAULT_SCHEDULE,
        parallelism=_parallelism(config, topology.num_domains),
        replicas=tuple(Placement.parse(one, names) for one in replicas),
        shares=() if config.shares is None else parse_counts(config.shares, "shares"),
        shares_domains=config.share_domains,
        exchange=GradientExchange(
            overlapped=config.overlap_gradients,
            bucket_bytes=None if bucket_mb is None else bucket_mb * 1e6,
            tree=() if config.tree is None else parse_counts(config.tree, "tree"),
            sharded=config.shard_replicas,
        ),
        activation_compression=config.activation_compression,
    )


def _parallelism(config: Config, num_domains: int) -> tuple[Parallelism, ...]:
    """Read one for all domains, or one for each."""
    sharding = config.sharding
    if config.shard_optimiser:
        if sharding not in ("none", "optimiser"):
            raise UsageError(f"shard_optimiser must not be given with sharding, got {sharding}")
        sharding = "optimiser"
    if config.parallelism is None:
        if sharding != "none":
            field = "shard_optimiser" if config.shard_optimiser else "sharding"
            raise UsageError(f"{field} needs a parallelism, got none")
        if not config.sequence_parallel:
            raise UsageError("no-sequence-parallel needs a parallelism, got none")
        return ()
    each = tuple(Parallelism.parse(item) for item in config.parallelism.split(","))
    if len(each) not in (1, num_domains):
        raise UsageError(
            f"parallelism must be one for all or one for each of {num_domains} domains, "
            f"got {len(each)}"
        )
    if len(each) == 1:
        each *= num_domains
    if config.expert_skew != 1.0 and all(one.expert == 1 for one in each):
        raise UsageError(
            "expert_skew needs GPUs that share experts, such as --parallelism 1x8x1e8; "
            f"got {config.expert_skew:g} without"
        )
    return tuple(
        replace(
            one,
            sharding=sharding,
            expert_skew=config.expert_skew if one.expert > 1 else 1.0,
            sequence_parallel=config.sequence_parallel,
        )
        for one in each
    )


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
    with prefixed_errors(f"other-jobs: {text}: ", UsageError):
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
