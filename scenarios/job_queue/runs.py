"""Runs of a comparison: worlds, policies and results, several at once."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import process_time

from agents.cluster.table import BLOX_ORDERINGS, PolicySetting, policy_named
from calibration.reference.pool import worker_processes
from des.base.checks import require_known
from des.base.command import UsageError
from des.cluster.history import History
from des.cluster.policy import Decision, Policy, View
from des.cluster.queued_job import QueuedJob
from des.cluster.running import run
from des.cluster.world import BloxRules, World
from des.dynamics import MarkovModulated
from des.plan.replacement import Replacement
from scenarios.frame.named_columns import named_columns
from scenarios.job_queue.job_pricing import LinkRow, link_rows, pricing_of, queue_nodes
from scenarios.job_queue.settings import Combination, Config, quotas_of, tracked_of
from scenarios.job_queue.traces.forms import read_job_trace
from scenarios.job_queue.traces.trace_jobs import JobTrace
from scenarios.job_queue.workloads import (
    DrawnJobs,
    DualLoad,
    ElasticJobs,
    TracedJobs,
    workload_hash,
)

_SAMPLE = 1000
"""Jobs from which Gittins indices are taken, of another seed than those that are run."""

PROBE = QueuedJob(job_id=0, arrival_s=0.0, num_gpus=1, service_s=1.0)
"""Job of which policies are made where only their names matter."""

_MOST_HASHED = 100_000
_MOST_POINTS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRun:
    """Result of a combination.

    ``demand`` holds (time, GPUs wanted, GPUs free) at decisions, thinned out; ``cpu_s`` is the time
    of the simulation alone.
    """

    combination: Combination
    history: History
    workload: str
    demand: tuple[tuple[float, int, int], ...]
    links: tuple[LinkRow, ...]
    cpu_s: float


class ThinnedSeries:
    """Points at decisions, of which every second one is dropped whenever there are too many."""

    def __init__(self) -> None:
        self.points: list[tuple[float, int, int]] = []
        self._every, self._count = 1, 0

    def watch(self, view: View, _: Decision) -> None:
        """Keep the state at a decision, or leave it out."""
        self._count += 1
        if self._count % self._every == 0:
            self.points.append((view.now_s, view.demand_gpus, view.free.num_free))
            if len(self.points) > _MOST_POINTS:
                del self.points[::2]
                self._every *= 2


def read_trace_of(config: Config) -> JobTrace | None:
    """Trace of a comparison, if it has one."""
    if config.trace is None:
        if config.columns:
            raise UsageError("--columns must be of a trace, got no --trace")
        return None
    if config.columns and config.trace_form != "auto":
        raise UsageError(f"--columns must be without --trace-form, got {config.trace_form}")
    return read_job_trace(
        config.trace,
        config.trace_form,
        columns=named_columns(config.columns),
        keeps_failed=not config.completed_only,
    )


def world_of(config: Config, trace: JobTrace | None, load: float, seed: int) -> World:
    """World of a load and a workload seed."""
    jobs: Iterable[QueuedJob]
    if trace is not None:
        jobs = TracedJobs(jobs=trace.jobs, density=config.density, jobs_per_hour=load, seed=seed)
    elif config.workload != "philly_like":
        has_short = config.workload == "dual"
        jobs = DualLoad(jobs_per_hour=load, seed=seed, mix=config.mix, has_short=has_short)
    else:
        jobs = DrawnJobs(jobs_per_hour=load, seed=seed, mix=config.mix)
    if config.elastic_gpus:
        jobs = ElasticJobs(jobs=jobs, most_gpus=config.elastic_gpus)
    return World(
        nodes=queue_nodes(config),
        jobs=jobs,
        tracked_ids=tracked_of(config),
        round_s=config.round_duration,
        blox=BloxRules(rate=config.blox_rate) if config.compat == "blox" else None,
        replacement=Replacement(restart_s=config.restart),
        failures=_failures_of(config),
        checkpoint_every_s=config.checkpoint,
        keeps_stays=seed == config.seed,
        too_wide="count" if config.count_too_wide else "refuse",
        until_s=config.until_days * 86_400.0,
    )


def _failures_of(config: Config) -> MarkovModulated | None:
    """Law by which nodes fail and are repaired, each on its own."""
    if not config.mtbf_hours:
        return None
    up_s, down_s = 3600.0 * config.mtbf_hours, 3600.0 * config.repair_hours
    return MarkovModulated.up_and_down(up_s, down_s, starts_in="up")


def queue_policy_of(
    config: Config, combination: Combination, sample: Sequence[QueuedJob]
) -> Policy:
    """Policy of a combination.

    Raises
    ------
    ValueError
        If a part has no such name.
    """
    setting = PolicySetting(
        quantum_s=config.quantum or None,
        sample_gpu_s=tuple(job.num_gpus * job.service_s for job in sample),
        quota_gpus=quotas_of(config),
        checkpoint=config.policy_file,
    )
    is_blox = config.compat == "blox"
    name = combination.policy
    if is_blox:
        require_known("--compat blox: unknown policy", name, BLOX_ORDERINGS)
    policy = policy_named(
        "fifo" if is_blox else name,
        placing=combination.placing,
        admission=combination.admission,
        preempting=combination.preempting,
        level=config.level,
        is_level_required=config.level_required,
        setting=setting,
    )
    return replace(policy, ordering=BLOX_ORDERINGS[name]()) if is_blox else policy


def run_combination(config: Config, trace: JobTrace | None, combination: Combination) -> QueueRun:
    """Run one combination."""
    world = world_of(config, trace, combination.load, combination.seed)
    other = world_of(config, trace, combination.load, combination.seed + 2**40)
    sample = tuple(itertools.islice(other.jobs, _SAMPLE))
    demand = ThinnedSeries()
    begun_s = process_time()
    history = run(
        world,
        queue_policy_of(config, combination, sample),
        combination.seed,
        pricing=pricing_of(config, world.replacement),
        watch=demand.watch,
    )
    cpu_s = process_time() - begun_s
    last = world.tracked_ids[1] + 1 if world.tracked_ids is not None else _MOST_HASHED
    return QueueRun(
        combination=combination,
        history=history,
        workload=workload_hash(world.jobs, min(last, _MOST_HASHED)),
        demand=tuple(demand.points),
        links=tuple(link_rows(config, history)),
        cpu_s=cpu_s,
    )


def run_all(
    config: Config, trace: JobTrace | None, chosen: Sequence[Combination]
) -> Iterator[QueueRun]:
    """Run all combinations, ``workers`` at a time; results come in the order given."""
    with worker_processes(min(config.workers, len(chosen))) as map_at_work:
        yield from map_at_work(partial(run_combination, config, trace), chosen)
