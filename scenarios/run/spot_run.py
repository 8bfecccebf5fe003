"""A training run on a world whose sites come and go: a rule decides which of them are held."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.planners.names import SPOT_RULES
from agents.replanning.spot.clairvoyant import most_tokens
from agents.replanning.spot.look_ahead import fit_season
from agents.replanning.spot.searched_offers import OfferedWorlds, offers_of, search_plans
from agents.replanning.spot.table import METHODS, SpotCase
from agents.search.search import MICROBATCH_SIZES, PlanRequest
from agents.trainers.table import trainer_named
from des import Topology
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.base.flags import to_dict
from des.dynamics.site_course import DAY_S
from des.dynamics.site_law import SpotLaw
from des.figures.figure import Figure
from des.figures.marks import Boxes
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel, named_rows
from des.spot.engine import run_spot
from des.spot.spot_law import draw_course
from des.spot.world import SpotHistory
from scenarios.frame.outputs import OutputChoice, repetition_of, require_no_run, write_files
from scenarios.frame.report import PageTable, Report
from scenarios.iteration.iteration_tables import plain_console
from scenarios.run.training_run_config import PROG, Config
from scenarios.run.training_run_scenario import read_plan

IDLE = (
    *("placement", "parallelism", "replicas", "shares", "corrections", "dynamics", "loads"),
    *("arrivals_per_s", "mean_duration_s", "gpu_fraction", "memory_fraction", "most_jobs"),
    *("replay_loads", "replan_threshold", "replan_every", "pays_bytes"),
)
"""Flags without effect where sites come and go: links stand at base figures, nothing else runs."""

_TICKS_PER_EPOCH = 4
_SEASON_DAYS = 28
_SEASON_SEED = 2**62
"""Seed of the course by which the seasonal rule knows the law, far from those of runs."""


@dataclass(frozen=True, kw_only=True)
class SpotRun:
    """A run, and what the other rules make of the same course.

    ``held`` is the offer that is held in each tick; ``most_tokens`` those of a clairvoyant.
    """

    case: SpotCase
    held: tuple[int, ...]
    histories: dict[str, SpotHistory]
    most_tokens: float
    rule: str

    @property
    def history(self) -> SpotHistory:
        """That of the rule that was asked for."""
        return self.histories[self.rule]


def run_on_spot(config: Config, given: Collection[str], topology: Topology, law: SpotLaw) -> None:
    """Run the command on a world with a law of its sites.

    Raises
    ------
    UsageError
        If a flag has no effect there, or the planner is no rule for such sites.
    """
    for name in IDLE:
        if name in given:
            raise UsageError(
                f"{PROG}: {name} must be left out where sites come and go, "
                f"got {getattr(config, name)!r}"
            )
    if config.plan is None and config.planner not in SPOT_RULES:
        raise UsageError(
            f"{PROG}: planner must be one of {', '.join(SPOT_RULES)} where sites come and go, or "
            f"plan be given; got {config.planner}"
        )
    OutputChoice(figures=config.figures, parquet=config.parquet)
    require_no_run(config.out)
    found = simulate_spot(config, spot_case(config, topology, law))
    paths = write_files(config.out, spot_files(config, found))
    DOCUMENT.add(**_summary(config, found), files=paths)
    console = plain_console(sys.stdout)
    console.print(_title(config), style="bold", soft_wrap=True)
    for line in (*_answer(found), "", *_table_lines(found)):
        console.print(line, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


def spot_case(config: Config, topology: Topology, law: SpotLaw) -> SpotCase:
    """Return the world of the flags: the best plan of every set of sites, or the plan given."""
    if config.plan is None:
        plans = search_plans(_request(config, topology), law)
    else:
        plans = (read_plan(config.plan),)
    law = law.over(list(topology.index_of))
    tick_s = config.epoch_s / _TICKS_PER_EPOCH
    worlds = OfferedWorlds(
        offers=offers_of(plans, law, config.restart_s),
        law=law,
        num_ticks=config.epochs * _TICKS_PER_EPOCH,
        tick_s=tick_s,
        ticks_per_decision=_TICKS_PER_EPOCH,
        sees_all=not config.partial,
    )
    days = draw_course(law, _SEASON_SEED, round(_SEASON_DAYS * DAY_S / tick_s), tick_s)
    return SpotCase(
        name=str(config.network),
        model=config.model,
        world=worlds(config.seed)[0],
        law=law,
        season=fit_season(days),
    )


def _request(config: Config, topology: Topology) -> PlanRequest:
    size = config.microbatch_size
    return PlanRequest(
        topology=replace(topology.at_start(), availability=None),
        job=TrainingJob.of(config.workload(config.microbatches)),
        trainer=trainer_named(config.trainer),
        schedules=() if config.schedule is None else (config.schedule,),
        microbatch_sizes=MICROBATCH_SIZES if size is None else (size,),
    )


def simulate_spot(config: Config, case: SpotCase) -> SpotRun:
    """Run every rule on the course; a plan that is given is held whenever its sites are up."""
    rule = config.planner if config.plan is None else "greedy"
    assert rule is not None
    held: list[int] = []
    horizon_s = config.horizon_epochs * config.epoch_s
    histories = {
        name: run_spot(
            case.world,
            METHODS[name].make([case], horizon_s),
            config.seed,
            watch=held.append if name == rule else None,
        )
        for name in (SPOT_RULES if config.plan is None else (rule,))
    }
    return SpotRun(
        case=case,
        held=tuple(held),
        histories=histories,
        most_tokens=most_tokens(case.world),
        rule=rule,
    )


def spot_files(config: Config, found: SpotRun) -> dict[str, bytes]:
    """Make the content of all files."""
    course, offers = found.case.world.course, found.case.world.offers
    names = [*offers.names, ""]
    tables = {
        "sites": {
            "time_s": [tick * course.tick_s for tick in range(course.num_ticks)],
            **{
                name: up.astype(int).tolist()
                for name, up in zip(course.sites, course.up.T, strict=True)
            },
            "held": [names[offer] for offer in found.held],
        },
        "rules": {
            "rule": list(found.histories),
            **{
                name: [values[name] for values in map(_figures, found.histories.values())]
                for name in _figures(found.history)
            },
        },
    }
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)
    head, *rows = _cells(found)
    answer, *rest = _answer(found)
    page = Report(
        title=_title(config),
        question="What does the job train, and what does it lose, as sites come and go?",
        answer=answer,
        repeat=repetition_of(PROG, config),
        tables=(
            PageTable(title="Rules on this course", head=head, rows=tuple(rows), notes=tuple(rest)),
        ),
        figures=(spot_figure(found),),
    )
    text = json.dumps(_summary(config, found), indent=2, allow_nan=False) + "\n"
    return choice.row_files(tables) | {"result.json": text.encode()} | choice.report_files(page)


def _summary(config: Config, found: SpotRun) -> dict[str, object]:
    """Return the content of result.json."""
    law, left_out = found.case.law, {"out", "figures", "parquet", *IDLE}
    return {
        **_figures(found.history),
        "share_of_clairvoyant": found.history.tokens / found.most_tokens,
        "clairvoyant_tokens": found.most_tokens,
        "rules": {name: _figures(one) for name, one in found.histories.items()},
        "offers": list(found.case.world.offers.names),
        "share_up": {site.name: site.share_up for site in law.sites},
        "config": {name: to for name, to in to_dict(config).items() if name not in left_out},
    }


def _figures(history: SpotHistory) -> dict[str, float]:
    return asdict(history) | {"effective_time_ratio": history.effective_time_ratio}


def _answer(found: SpotRun) -> tuple[str, ...]:
    """The answer, then what stands beside it."""
    history, course = found.history, found.case.world.course
    ups = zip(course.sites, course.shares.tolist(), strict=True)
    paid = "" if history.usd == 0.0 else f"; {history.usd:,.0f} USD"
    return (
        f"{history.tokens:.4g} tokens in {history.duration_s / 3600:.3g} h, "
        f"{history.tokens / history.duration_s:,.0f} a second: "
        f"{100 * history.tokens / found.most_tokens:.1f} % of what a clairvoyant trains",
        f"effective training time {100 * history.effective_time_ratio:.1f} %: "
        f"{history.num_moves} moves, {history.num_losses} losses of sites and "
        f"{history.num_failures} failures of servers, {history.lost_s:,.0f} s of work lost{paid}",
        f"up in this course: {', '.join(f'{name} {100 * share:.0f} %' for name, share in ups)}",
    )


def _cells(found: SpotRun) -> list[tuple[str, ...]]:
    """Head and rows of the table of rules, the best first."""
    rows = sorted(found.histories.items(), key=lambda item: -item[1].tokens)
    head = ("rule", "of clairvoyant", "tokens/s", "effective time", "moves", "losses", "USD")
    return [
        head,
        *(
            (
                name,
                f"{100 * one.tokens / found.most_tokens:.1f} %",
                f"{one.tokens / one.duration_s:,.0f}",
                f"{100 * one.effective_time_ratio:.1f} %",
                str(one.num_moves),
                str(one.num_losses),
                f"{one.usd:,.0f}",
            )
            for name, one in rows
        ),
    ]


def _table_lines(found: SpotRun) -> list[str]:
    cells = _cells(found)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:]))) for row in cells
    ]


def spot_figure(found: SpotRun) -> Figure:
    """Return when each site is up, and held, over the time of the run."""
    course, needs = found.case.world.course, found.case.world.offers.needs
    nothing = np.zeros_like(needs[:1])  # where an offer of -1 leads
    held = np.concatenate((needs, nothing))[list(found.held)]
    return Figure(
        name="sites",
        title="Sites that are up, and those that are held",
        seen=f"Held for {100 * found.history.held_s / course.duration_s:.0f} % of the time.",
        panels=(
            Panel(
                x=Axis(label="time [h]", low=0.0, high=course.duration_s / 3600),
                y=named_rows(course.sites),
                marks=(
                    _stays("up", course.up, course.tick_s, "#BBBBBB", 0.82),
                    _stays("held", held, course.tick_s, BLUE, 0.4),
                ),
                height=0.8 + 0.45 * len(course.sites),
                grid="x",
            ),
        ),
        width=9.0,
    )


def _stays(label: str, flags: np.ndarray, tick_s: float, colour: str, height: float) -> Boxes:
    """A box for each stay of a site, flags being (T, S)."""
    edges = np.diff(np.pad(flags.astype(int), ((1, 1), (0, 0))), axis=0)
    starts, rows = np.nonzero(edges.T == 1)[::-1]
    ends, _ = np.nonzero(edges.T == -1)[::-1]
    hours = tick_s / 3600
    return Boxes(
        label=label,
        starts=tuple((starts * hours).tolist()),
        ends=tuple((ends * hours).tolist()),
        rows=tuple(rows.astype(float).tolist()),
        colour=colour,
        height=height,
    )


def _title(config: Config) -> str:
    if config.plan is not None:
        return f"the plan of {config.plan}, on sites that come and go"
    return (
        f"{config.model} on {config.network}, whose sites come and go, decided by {config.planner}"
    )
