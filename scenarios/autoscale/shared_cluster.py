"""Several applications on one cluster, from a file, with a row of figures for each."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agents.serving.table import scaling_policy
from des.base.command import UsageError
from des.serving.applications import Application, SharedCluster, run_applications
from des.serving.fleet_figures import run_figures
from des.serving.fleet_world import History
from des.serving.training_cluster import run_with_training
from scenarios.autoscale import fleet_outputs, training_jobs
from scenarios.autoscale.application_files import ApplicationForm, read_applications
from scenarios.autoscale.command_configs import PROG, SharedConfig
from scenarios.autoscale.fleet_config import config_requests, config_world
from scenarios.frame.outputs import OutputChoice

_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


def run(config: SharedConfig) -> int:
    """Simulate the applications of a file, print and write their figures."""
    if config.applications is None:
        raise UsageError("--applications must name the file of the applications, got none")
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)  # refused before the work
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
        side = training_jobs.training_side(config)
        shared = run_with_training(applications, side, arbiter=config.arbiter, seed=config.seed)
        histories = shared.applications
        more = choice.row_files({"training_jobs": training_jobs.training_jobs_frame(shared)})
        sys.stdout.writelines(f"{line}\n" for line in training_jobs.training_lines(shared))
    else:
        histories = run_applications(applications, cluster, config.seed)
    rows = [{"policy": name, **run_figures(each)} for name, each in histories.items()]
    fleet_outputs.write_fleet_comparison(config, f"{PROG} shared", histories, rows, more)
    return 0


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
