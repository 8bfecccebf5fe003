"""A training run on a world whose sites come and go: a rule decides which of them are held."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
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
from des.base.checks import require_count, require_positive
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


def run_on_spot(
    config: Config,
    given: Collection[str],
    topology: Topology,
    law: SpotLaw,
    *,
    idle: Collection[str],
) -> None:
    """Run the command on a world with a law of its sites; ``idle`` flags say nothing anywhere.

    Raises
    ------
    UsageError
        If a flag has no effect there or is out of range, or the planner is no rule for such sites.
    """
    require_count(PROG, "epochs", config.epochs)
    require_positive(PROG, "epoch_s", config.epoch_s)
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
    tuned = {"horizon_epochs"} if is_tuned else set()
    found = simulate_spot(config, topology, law, idle=frozenset({*IDLE, *idle, *tuned}))
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
        num_ticks = max(1, round(_SEASON_DAYS * DAY_S / tick_s))
        days = draw_course(whole, _OTHER_SEED, num_ticks, tick_s)
        return cls(config=config, worlds=worlds, season=fit_season(days))

    def case(self, seed: int) -> SpotCase:
        """Return the case of a seed."""
        world, law = self.worlds(seed)
        name, model = str(self.config.network), self.config.model
        return SpotCase(name=name, model=model, world=world, law=law, season=self.season)

    def horizons_h(self, rules: Sequence[str], given_h: float | None) -> dict[str, float]:
        """Horizon of each rule: the given one, else the best on other courses of the law. [h]

        A rule that has but one keeps it.
        """
        methods = {rule: METHODS[rule] for rule in rules}
        if given_h is not None:
            return {
                rule: given_h if len(one.horizons_h) > 1 else one.horizons_h[0]
                for rule, one in methods.items()
            }
        cases = [self.case(_OTHER_SEED + number) for number in range(1, _NUM_TUNED + 1)]
        most = np.maximum(clairvoyant_tokens(cases), 1.0)  # a course may have no time up
        return {rule: tune_horizon_h(one, cases, most) for rule, one in methods.items()}


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


def simulate_spot(
    config: Config, topology: Topology, law: SpotLaw, *, idle: frozenset[str]
) -> SpotRun:
    """Run every rule on the course of the seed; ``idle`` are the flags that say nothing.

    A plan that is given is held whenever its sites are up. Where the horizon is idle each rule has
    the best one of its own on other courses of the law.
    """
    rule = config.planner if config.plan is None else "greedy"
    assert rule is not None
    drawn = _Drawn.of(config, topology, law)
    case, held = drawn.case(config.seed), list[int]()
    given_h = config.horizon_epochs * config.epoch_s / HOUR_S
    rules = SPOT_RULES if config.plan is None else (rule,)
    horizons_h = drawn.horizons_h(rules, None if "horizon_epochs" in idle else given_h)
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
        idle=idle,
        most_tokens=most_tokens(case.world),
        rule=rule,
    )
