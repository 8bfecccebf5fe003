"""Training jobs on the servers of the applications: their cluster from flags, and its figures."""

import pandas as pd

from agents.cluster.table import PolicySetting, policy_named
from des.base.checks import require_count
from des.cluster.node_set import NodeSet
from des.cluster.world import World
from des.plan.replacement import Replacement
from des.serving.training_cluster import SharedHistory, TrainingSide
from scenarios.autoscale.command_configs import SharedConfig
from scenarios.autoscale.fleet_outputs import rows_frame
from scenarios.job_queue.workloads import DrawnJobs

_HOUR_S = 3600.0


def training_side(config: SharedConfig) -> TrainingSide:
    """Make the cluster of the servers, its jobs and their policy.

    Raises
    ------
    ValueError
        If a flag is out of range or names no policy.
    """
    require_count("--training-jobs", "value", config.training_jobs)
    jobs = DrawnJobs(
        jobs_per_hour=config.training_jobs_per_hour,
        seed=config.seed,
        num_jobs=config.training_jobs,
        mix="blox",
    )
    world = World(
        nodes=NodeSet.equal(config.servers, config.gpus_per_server),
        jobs=jobs,
        replacement=Replacement(restart_s=config.training_restart),
    )
    policy = policy_named(
        config.training_policy,
        preempting=config.training_preemption,
        setting=PolicySetting(quantum_s=config.training_quantum),
    )
    return TrainingSide(world=world, policy=policy)


def training_lines(shared: SharedHistory) -> list[str]:
    """Figures of the jobs, and GPU hours by use."""
    history, seconds = shared.training, shared.training.gpu_seconds
    held_h, lent_h, free_h, all_h = (
        each / _HOUR_S for each in (seconds.held, seconds.lent, seconds.free, seconds.present)
    )
    return [
        f"training: {len(history.jobs)} jobs, mean time {history.mean_jct_of_all_s / _HOUR_S:.2f} "
        f"h, {history.num_suspensions} suspensions; {shared.num_refused} claims refused",
        f"GPU hours: {held_h:.1f} training + {lent_h:.1f} serving + {free_h:.1f} free = "
        f"{all_h:.1f} of the cluster",
    ]


def training_jobs_frame(shared: SharedHistory) -> pd.DataFrame:
    """Table of the jobs, a row each."""
    return rows_frame([job._asdict() for job in shared.training.jobs])
