"""Several applications on one cluster, from a file, with a row of figures for each."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from agents.cluster.table import PolicySetting, policy_named
from agents.serving.table import scaling_policy
from des.base.checks import require_count
from des.base.command import UsageError
from des.cluster.node_set import NodeSet
from des.cluster.world import World
from des.plan.replacement import Replacement
from des.serving.applications import Application, SharedCluster, run_applications
from des.serving.fleet_figures import run_figures
from des.serving.fleet_world import History
from des.serving.training_cluster import SharedHistory, TrainingSide, run_with_training
from scenarios.autoscale import fleet_outputs
from scenarios.autoscale.application_files import ApplicationForm, read_applications
from scenarios.autoscale.command_configs import PROG, SharedConfig
from scenarios.autoscale.fleet_config import config_requests, config_world
from scenarios.autoscale.fleet_outputs import rows_frame
from scenarios.job_queue.workloads import DrawnJobs

_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


def run(config: SharedConfig) -> None:
    """Simulate the applications of a file, print and write their figures."""
    if config.applications is None:
        raise UsageError("--applications must name the file of the applications, got none")
    choice = config.choice()  # refused before the work
    forms = read_applications(config.applications)
    cluster = SharedCluster(
        num_servers=config.servers,
        gpus_per_server=config.gpus_per_server,
        arbiter=config.arbiter,
    )
    applications = {
        name: _application(config, config.applications.parent, name, form)
        for name, form in forms.items()
    }
    for name, each in applications.items():
        sys.stderr.write(f"{name}: {len(each.world.requests)} requests\n")
    more: dict[str, bytes] = {}
    histories: Mapping[str, History]
    if config.training_jobs:
        side = training_side(config)
        shared = run_with_training(applications, side, arbiter=config.arbiter, seed=config.seed)
        histories = shared.applications
        more = choice.row_files({"training_jobs": training_jobs_frame(shared)})
        sys.stdout.writelines(f"{line}\n" for line in training_lines(shared))
    else:
        histories = run_applications(applications, cluster, config.seed)
    rows = [{"policy": name, **run_figures(each)} for name, each in histories.items()]
    fleet_outputs.write_fleet_comparison(config, f"{PROG} shared", histories, rows, more)


def _application(
    config: SharedConfig, folder: Path, name: str, form: ApplicationForm
) -> Application:
    if not set(name) <= _NAME:
        raise ValueError(
            f"{config.applications}: application_id must be lower-case letters, digits, _ and -, "
            f"got {name!r}"
        )
    own = replace(
        config,
        application=name,
        trace=form.trace or config.trace,
        start_state=folder / form.start_state if form.start_state else config.start_state,
        slo_ttft=form.slo_ttft or config.slo_ttft,
        slo_tbt=form.slo_tbt or config.slo_tbt,
    )
    return Application(
        world=config_world(own, config_requests(own)),
        policy=scaling_policy(form.policy or config.policy, config.checkpoint),
        priority=form.priority,
    )


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
