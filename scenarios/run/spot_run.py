"""A training run on a world whose sites come and go: a rule decides which of them are held."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.planners.names import SPOT_RULES
from agents.replanning.searched_offers import OfferedWorlds, offers_of, search_site_sets
from agents.replanning.spot.clairvoyant import most_tokens
from agents.replanning.spot.look_ahead import fit_season
from agents.replanning.spot.table import (
    HOUR_S,
    METHODS,
    SpotCase,
    clairvoyant_tokens,
    tune_horizon_h,
)
from agents.search.search import MICROBATCH_SIZES, PlanRequest
from agents.trainers.table import trainer_named
from des import Topology
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.dynamics.site_course import DAY_S
from des.dynamics.site_law import SpotLaw
from des.spot.engine import run_spot
from des.spot.offers import Table
from des.spot.spot_law import draw_course
from scenarios.frame.outputs import OutputChoice, require_no_run, write_files
from scenarios.iteration.iteration_tables import plain_console
from scenarios.run.spot_outputs import IDLE, SpotRun, spot_files, spot_lines, spot_summary
from scenarios.run.training_run_config import PROG, Config
from scenarios.run.training_run_scenario import read_plan

_TICKS_PER_EPOCH = 4
_SEASON_DAYS = 28
_NUM_TUNED = 8
_OTHER_SEED = 2**62
"""Seed of the courses by which rules know the law, far from those of runs."""


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
    is_tuned = config.plan is None and "horizon_epochs" not in given
    found = simulate_spot(config, topology, law, is_tuned=is_tuned)
    paths = write_files(config.out, spot_files(config, found))
    DOCUMENT.add(**spot_summary(config, found), files=paths)
    console = plain_console(sys.stdout)
    for line in spot_lines(config, found):
        console.print(line, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """Cases on courses of a law, by their seeds."""

    config: Config
    worlds: OfferedWorlds
    season: tuple[Table, Table]

    @classmethod
    def of(cls, config: Config, topology: Topology, law: SpotLaw) -> Self:
        """Search the best plan of every set of sites, or take the plan that is given."""
        if config.plan is None:
            plans = search_site_sets(_request(config, topology), law)
        else:
            plans = (read_plan(config.plan),)
        whole = law.over(list(topology.index_of))
        tick_s = config.epoch_s / _TICKS_PER_EPOCH
        worlds = OfferedWorlds(
            offers=offers_of(plans, law, config.restart_s),
            law=whole,
            num_ticks=config.epochs * _TICKS_PER_EPOCH,
            tick_s=tick_s,
            ticks_per_decision=_TICKS_PER_EPOCH,
            sees_all=not config.partial,
        )
        days = draw_course(whole, _OTHER_SEED, round(_SEASON_DAYS * DAY_S / tick_s), tick_s)
        return cls(config=config, worlds=worlds, season=fit_season(days))

    def case(self, seed: int) -> SpotCase:
        """Return the case of a seed."""
        world, law = self.worlds(seed)
        name, model = str(self.config.network), self.config.model
        return SpotCase(name=name, model=model, world=world, law=law, season=self.season)

    def horizon_h(self, rule: str) -> float:
        """Best horizon of a rule on other courses of the law. [h]"""
        cases = [self.case(_OTHER_SEED + number) for number in range(1, _NUM_TUNED + 1)]
        most = np.maximum(clairvoyant_tokens(cases), 1.0)  # a course may have no time up
        return tune_horizon_h(METHODS[rule], cases, most)


def _request(config: Config, topology: Topology) -> PlanRequest:
    size = config.microbatch_size
    return PlanRequest(
        topology=replace(topology.at_start(), availability=None),
        job=TrainingJob.of(config.workload(config.microbatches)),
        trainer=trainer_named(config.trainer),
        schedules=() if config.schedule is None else (config.schedule,),
        microbatch_sizes=MICROBATCH_SIZES if size is None else (size,),
        outer_modes=(),  # tokens of changed training are worth less
    )


def simulate_spot(config: Config, topology: Topology, law: SpotLaw, *, is_tuned: bool) -> SpotRun:
    """Run every rule on the course of the seed.

    A plan that is given is held whenever its sites are up. ``is_tuned``: each rule has the best
    horizon of its own on other courses of the law, in place of that of the flags.
    """
    rule = config.planner if config.plan is None else "greedy"
    assert rule is not None
    drawn = _Drawn.of(config, topology, law)
    case, held = drawn.case(config.seed), list[int]()
    given_h = config.horizon_epochs * config.epoch_s / HOUR_S
    horizons_h = {
        name: drawn.horizon_h(name) if is_tuned else given_h
        for name in (SPOT_RULES if config.plan is None else (rule,))
    }
    histories = {
        name: run_spot(
            case.world,
            METHODS[name].make([case], horizon_h * HOUR_S),
            config.seed,
            watch=held.append if name == rule else None,
        )
        for name, horizon_h in horizons_h.items()
    }
    return SpotRun(
        case=case,
        held=tuple(held),
        histories=histories,
        horizons_h=horizons_h,
        is_tuned=is_tuned,
        most_tokens=most_tokens(case.world),
        rule=rule,
    )
