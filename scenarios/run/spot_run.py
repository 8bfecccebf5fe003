"""A training run on a world whose sites come and go: a rule decides which of them are held."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import replace

from agents.decision.training_job import TrainingJob
from agents.planners.names import SPOT_RULES
from agents.replanning.searched_offers import OfferedWorlds, offers_of, search_site_sets
from agents.replanning.spot.clairvoyant import most_tokens
from agents.replanning.spot.look_ahead import fit_season
from agents.replanning.spot.table import METHODS, SpotCase
from agents.search.search import MICROBATCH_SIZES, PlanRequest
from agents.trainers.table import trainer_named
from des import Topology
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.dynamics.site_course import DAY_S
from des.dynamics.site_law import SpotLaw
from des.spot.engine import run_spot
from des.spot.spot_law import draw_course
from scenarios.frame.outputs import OutputChoice, require_no_run, write_files
from scenarios.iteration.iteration_tables import plain_console
from scenarios.run.spot_outputs import IDLE, SpotRun, spot_files, spot_lines, spot_summary
from scenarios.run.training_run_config import PROG, Config
from scenarios.run.training_run_scenario import read_plan

_TICKS_PER_EPOCH = 4
_SEASON_DAYS = 28
_SEASON_SEED = 2**62
"""Seed of the course by which the seasonal rule knows the law, far from those of runs."""


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
    DOCUMENT.add(**spot_summary(config, found), files=paths)
    console = plain_console(sys.stdout)
    for line in spot_lines(config, found):
        console.print(line, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


def spot_case(config: Config, topology: Topology, law: SpotLaw) -> SpotCase:
    """Return the world of the flags: the best plan of every set of sites, or the plan given."""
    if config.plan is None:
        plans = search_site_sets(_request(config, topology), law)
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
