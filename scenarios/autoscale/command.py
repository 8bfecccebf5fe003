"""Scale an inference fleet by policies on one trace, and compare cost and latency.

The subcommand `capacity` finds the most load that a fixed fleet bears within the SLO, `shared` puts
several applications on one cluster, `queues` compares waits with closed forms, `speed` measures the
engines.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.flags import parse
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.base.spelling import own_arguments
from des.serving.fleet_settings import FROM_SHAPES
from scenarios.autoscale.command_configs import (
    PROG,
    CapacityConfig,
    Config,
    QueuesConfig,
    SharedConfig,
    SpeedConfig,
)
from scenarios.autoscale.fleet_config import config_requests, config_world

with lazy_imports(__name__):
    from agents.serving import learnt_policy, table
    from des.serving import fleet_engine, fleet_figures
    from des.serving.fleet_world import History
    from scenarios.autoscale import advisory, fleet_outputs

_EXAMPLES = f"""\
examples:
  {PROG} --trace azure-2023-conv --policy static,hpa,sla --slo-ttft 0.5 --slo-tbt 0.1
  {PROG} --trace my.csv --policy predictive --mixed 4 --out runs/mine
  {PROG} --policy static --advisory sla
  {PROG} --trace mmpp:2/12:120:1800 --policy hpa,predictive --mixed 2
  {PROG} --trace azure-2023-conv --policy rl --learn
  {PROG} speed
  {PROG} queues --runs 5
  {PROG} shared --applications applications.yaml --servers 8 --arbiter priority
  {PROG} shared --applications applications.yaml --servers 12 --training-jobs 60
  {PROG} capacity --trace azure-2023-code --slo-ttft 1 --splits 2+1,2+2 --out runs/capacity

files written to --out, for each policy: requests, instances and decisions (CSV; --parquet: also as
Parquet), a Gantt chart of instances (--figures), a Chrome trace (JSON) and the log of the scaling
manager; figures.csv, report.html and result.json, with the settings that --config takes, of all
policies; shared, with jobs: training_jobs.csv

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""


SUBCOMMANDS: Mapping[str, tuple[type[Any], str, str]] = {
    "capacity": (
        CapacityConfig,
        "capacity_search",
        "Find the most load that fixed fleets bear within the SLO.",
    ),
    "queues": (
        QueuesConfig,
        "queue_waits",
        "Compare waits with the closed forms of M/M/1 and M/D/1.",
    ),
    "shared": (
        SharedConfig,
        "shared_cluster",
        "Put several applications on one cluster, with an arbiter.",
    ),
    "speed": (SpeedConfig, "speed", "Measure requests per CPU second of both engines."),
}
"""Flags of each subcommand, the module of this package with its ``run(config)``, description."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(own_arguments(argv, PROG)))


def _command(arguments: list[str]) -> int:
    name = next(iter(arguments), "")
    if name not in SUBCOMMANDS:
        config = parse(Config, arguments, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
        return _run(config)
    config_class, module, about = SUBCOMMANDS[name]
    config = parse(
        config_class, arguments[1:], prog=f"{PROG} {name}", description=about, epilog=_EXAMPLES
    )
    found = import_module(f"scenarios.autoscale.{module}")  # takes seconds
    return int(found.run(config) or 0)


def _run(config: Config) -> int:
    if not config.policy:
        raise UsageError("--policy must name at least one policy, got none")
    config.choice()  # refused before minutes of work
    if config.learn and (table.LEARNT not in config.policy or config.advisory is not None):
        raise UsageError("--learn must be with --policy rl and without --advisory")
    make = partial(table.scaling_policy, checkpoint=config.checkpoint)
    policies = {name: make(name) for name in config.policy}
    advised = None if config.advisory is None else make(config.advisory)
    world = config_world(config, config_requests(config))
    if world.engine.times_from == FROM_SHAPES:
        sys.stderr.write("times are from shapes, as there is no measured profile\n")
    rows: list[dict[str, object]] = []
    files: dict[str, bytes] = {}
    histories: dict[str, History] = {}
    for name, policy in policies.items():
        sys.stderr.write(f"{name}: {counted(len(world.requests), 'request')}\n")
        watched = policy if advised is None else advisory.Advised(policy, advised)
        if config.learn and name == table.LEARNT:
            path = config.checkpoint or table.SHIPPED
            history = learnt_policy.learn_in_the_loop(world, config.seed, path)
        else:
            history = fleet_engine.run(world, watched, config.seed)
        histories[name] = history
        figures = fleet_figures.run_figures(history)
        rows.append({"policy": name, "times_from": world.engine.times_from, **figures})
        if isinstance(watched, advisory.Advised):
            files[f"advisory_{name}.csv"] = watched.csv_bytes()
    fleet_outputs.write_fleet_comparison(config, PROG, histories, rows, files)
    return 0
