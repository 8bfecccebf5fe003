"""Most load that fixed fleets bear within the SLO, by bisection over the stretch of a trace."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from des.base.checks import require_count, require_fraction
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.compiled.fleet import simulate_fixed
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Line, Points
from des.figures.palette import BLUE, GREY, VERMILION
from des.figures.panels import Axis
from des.serving.request_streams import stretched
from des.serving.requests import Request
from scenarios.autoscale.command_configs import PROG, CapacityConfig
from scenarios.autoscale.fleet_config import config_requests, config_world
from scenarios.autoscale.fleet_outputs import rows_frame
from scenarios.frame.outputs import OutputChoice, repeated_settings, result_file, write_files
from scenarios.frame.rows_report import rows_report

_NUM_BISECTIONS = 8
_WIDEST = 64.0
"""Largest factor of the load that is tried, and its inverse the smallest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Most load of one fleet, and what it costs; None: no load tried is within the SLO."""

    fleet: str
    requests_per_s: float | None
    attainment: float | None
    usd_per_h: float
    usd_per_million_tokens: float | None


def run(config: CapacityConfig) -> None:
    """Print a row for each fleet: most load, its cost, and whether no other bears more for less."""
    require_fraction("--attainment", "value", config.attainment)
    choice = config.choice()
    requests = config_requests(config)
    sys.stdout.write(
        "fleet      requests/s  attainment   USD/h  USD per million output tokens  Pareto\n"
    )
    found = []
    for sized in _sized(config):
        found.append(_capacity(sized, requests))
        sys.stderr.write(f"{found[-1].fleet}: done\n")
    best = pareto(found)
    for one in found:
        if one.requests_per_s is None:
            sys.stdout.write(f"{one.fleet:9}  none of the loads tried is within the SLO\n")
            continue
        mark = "yes" if one in best else "no"
        sys.stdout.write(
            f"{one.fleet:9}  {one.requests_per_s:10.2f}  {one.attainment:10.4f}  "
            f"{one.usd_per_h:6.1f}  {one.usd_per_million_tokens:29.2f}  {mark}\n"
        )
    rows = [
        {name: getattr(one, name) for name in Capacity.__slots__} | {"is_pareto": one in best}
        for one in found
    ]
    DOCUMENT.add(rows=rows)
    if config.out is not None:
        _write(config, config.out, choice, rows, capacity_figure(found, best, config.attainment))


def _write(
    config: CapacityConfig,
    out: Path,
    choice: OutputChoice,
    rows: Sequence[Mapping[str, object]],
    picture: Figure,
) -> None:
    best = ", ".join(str(row["fleet"]) for row in rows if row["is_pareto"])
    page = rows_report(
        config,
        f"{PROG} capacity",
        title="Capacity of fixed fleets",
        question="What is the highest load of each fleet within the SLO, and at what cost?",
        answer=f"No fleet serves a higher load for less than {best}."
        if best
        else "No fleet keeps the SLO at any load tried.",
        tables={"Fleets": rows_frame(rows)},
        figures=[picture],
    )
    files = choice.row_files({"capacity": rows_frame(rows)}) | choice.report_files(page)
    files |= result_file(repeated_settings(config), rows=rows)
    for path in write_files(out, files):
        sys.stdout.write(f"written: {path}\n")


def _sized(config: CapacityConfig) -> list[CapacityConfig]:
    sized = []
    for num in config.instances:
        require_count("--instances", "value", num)
        sized.append(replace(config, mixed=num))
    for split in config.splits:
        prompt, plus, token = split.partition("+")
        if not (plus and prompt.isdecimal() and token.isdecimal()):
            raise UsageError(f"--splits must be numbers such as 2+1, got {split!r}")
        sized.append(replace(config, mixed=0, prompt=int(prompt), token=int(token)))
    return sized


def _capacity(config: CapacityConfig, requests: tuple[Request, ...]) -> Capacity:
    factor, reached = _most_load(config, requests)
    world = config_world(config, requests)
    num = sum(world.initial.values())
    usd_h = num * world.engine.num_gpus * config.usd_per_gpu_h
    span_s = max(requests[-1].arrival_s, 1e-9)
    tokens_per_s = factor * sum(one.output_tokens for one in requests) / span_s
    is_reached = reached is not None
    return Capacity(
        fleet=f"{config.mixed} mixed" if config.mixed else f"{config.prompt}+{config.token}",
        requests_per_s=factor * len(requests) / span_s if is_reached else None,
        attainment=reached,
        usd_per_h=usd_h,
        usd_per_million_tokens=usd_h / 3600.0 / tokens_per_s * 1e6 if is_reached else None,
    )


def pareto(found: Sequence[Capacity]) -> list[Capacity]:
    """Fleets of which no other bears as much load for as little, and more or for less."""
    reached = [one for one in found if one.requests_per_s is not None]
    best: list[Capacity] = []
    for one in sorted(reached, key=lambda each: (each.usd_per_h, -(each.requests_per_s or 0.0))):
        if not best or (one.requests_per_s or 0.0) > (best[-1].requests_per_s or 0.0):
            best.append(one)
    return best


def capacity_figure(
    found: Sequence[Capacity], best: Sequence[Capacity], attainment: float
) -> Figure:
    """Return the most load of each fleet over its cost, and the front."""

    def points(label: str, some: Sequence[Capacity], colour: str) -> Points:
        return Points(
            label=label,
            x=tuple(one.usd_per_h for one in some),
            y=tuple(one.requests_per_s or 0.0 for one in some),
            colour=colour,
            hovers=tuple(one.fleet for one in some),
        )

    reached = [one for one in found if one.requests_per_s is not None]
    mixed = [one for one in reached if one.fleet.endswith("mixed")]
    line = Line(
        label="Pareto front",
        x=tuple(one.usd_per_h for one in best),
        y=tuple(one.requests_per_s or 0.0 for one in best),
        colour=GREY,
        is_step=True,
    )
    return panel_figure(
        name="capacity",
        title=f"Load within the SLO for {attainment:.0%} of the requests",
        seen=f"Most requests per second of {len(reached)} fleets over their cost per hour.",
        x=Axis(label="cost [USD/h]"),
        y=Axis(label="most load [requests/s]"),
        marks=(
            line,
            points("one pool", mixed, BLUE),
            points("two pools", [one for one in reached if one not in mixed], VERMILION),
        ),
    )


def _most_load(config: CapacityConfig, requests: tuple[Request, ...]) -> tuple[float, float | None]:
    """Largest factor of the load within the SLO to 3 %, and the attainment there."""
    low, high, found = 1.0 / _WIDEST, _WIDEST, None
    for _ in range(_NUM_BISECTIONS):
        middle = (low * high) ** 0.5
        reached = _attainment(config, stretched(requests, 1.0 / middle))
        if reached >= config.attainment:
            low, found = middle, reached
        else:
            high = middle
    return low, found


def _attainment(config: CapacityConfig, requests: tuple[Request, ...]) -> float:
    world = config_world(config, requests)
    served = len(world.requests) / (len(world.requests) + len(world.rejected))
    return served * simulate_fixed(world).attainment(world.slo)
