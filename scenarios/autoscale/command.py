"""Scale an inference fleet by policies on one trace, and compare cost and latency.

The command `capacity` finds the most load that a fixed fleet bears within the SLO, `speed` measures
the engines.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.document import DOCUMENT
from des.base.flags import option, parse
from des.base.lazy import lazy
from des.base.spelling import own_arguments
from scenarios.autoscale.fleet_config import FleetConfig, config_requests, config_world

if TYPE_CHECKING:
    from agents.serving import table
    from des.serving import fleet_engine, fleet_figures
    from des.serving.fleet_world import History
    from scenarios.autoscale import advisory, capacity_search, fleet_outputs, speed
    from scenarios.frame import repeat, writing
else:
    advisory = lazy("scenarios.autoscale.advisory")
    capacity_search = lazy("scenarios.autoscale.capacity_search")
    fleet_engine = lazy("des.serving.fleet_engine")
    fleet_figures = lazy("des.serving.fleet_figures")
    fleet_outputs = lazy("scenarios.autoscale.fleet_outputs")
    speed = lazy("scenarios.autoscale.speed")
    repeat = lazy("scenarios.frame.repeat")
    table = lazy("agents.serving.table")
    writing = lazy("scenarios.frame.writing")

PROG = "python -m scenarios.autoscale"
_EXAMPLES = f"""\
examples:
  {PROG} --trace azure-2023-conv --policy static,hpa,sla --slo-ttft 0.5 --slo-tbt 0.1
  {PROG} --trace my.csv --policy predictive --mixed 4 --out runs/mine
  {PROG} --policy static --advisory sla
  {PROG} --trace mmpp:2/12:120:1800 --policy hpa,predictive --mixed 2
  {PROG} speed
  {PROG} capacity --trace azure-2023-code --slo-ttft 1

files written to --out, for each policy: requests, instances and decisions (CSV), a Gantt chart of
instances (PNG) and a Chrome trace (JSON); figures.csv and report.html of all policies

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(FleetConfig):
    """Settings of the command; the fields are the flags."""

    policy: tuple[str, ...] = option(("static", "hpa", "sla"), "policies, one row each")
    advisory: str | None = option(None, "policy that is asked at each decision and not followed")
    checkpoint: Path | None = option(None, "trained policy, for rl", is_file=True)
    out: Path = option(Path("runs/autoscale"), "folder for the files")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityConfig(FleetConfig):
    """Settings of `capacity`; the fields are the flags."""

    attainment: float = option(0.99, "share of requests within the SLO")
    instances: tuple[int, ...] = option((1, 2, 4, 8), "sizes of a mixed pool, one row each")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(own_arguments(argv, PROG)))


def _command(arguments: list[str]) -> int:
    if arguments[:1] == ["capacity"]:
        config = parse(
            CapacityConfig,
            arguments[1:],
            prog=f"{PROG} capacity",
            description="Find the most load that a fixed fleet bears within the SLO.",
            epilog=_EXAMPLES,
        )
        return capacity_search.run_capacity(config, config.attainment, config.instances)
    if arguments == ["speed"]:
        return speed.run_speed()
    return _run(parse(Config, arguments, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES))


def _run(config: Config) -> int:
    if not config.policy:
        raise UsageError("--policy must name at least one policy, got none")
    policies = {name: table.scaling_policy(name, config.checkpoint) for name in config.policy}
    advised = (
        None
        if config.advisory is None
        else table.scaling_policy(config.advisory, config.checkpoint)
    )
    world = config_world(config, config_requests(config))
    rows: list[dict[str, object]] = []
    files: dict[str, bytes] = {}
    histories: dict[str, History] = {}
    for name, policy in policies.items():
        sys.stderr.write(f"{name}: {len(world.requests)} requests\n")
        watched = policy if advised is None else advisory.Advised(policy, advised)
        history = fleet_engine.run(world, watched, config.seed)
        histories[name] = history
        rows.append({"policy": name, **fleet_figures.run_figures(history)})
        files |= fleet_outputs.policy_files(name, history)
        if isinstance(watched, advisory.Advised):
            files[f"advisory_{name}.csv"] = watched.csv_bytes()
    files |= fleet_outputs.report_of(
        rows,
        histories,
        settings=repeat.repeated_settings(config),
        command=repeat.repeat_command(PROG, config),
    )
    fleet_outputs.show(rows)
    paths = writing.write_files(config.out, files)
    DOCUMENT.add(rows=rows, files=paths)
    for path in paths:
        sys.stdout.write(f"written: {path}\n")
    return 0
