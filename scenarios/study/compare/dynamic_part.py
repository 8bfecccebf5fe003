"""Rules of re-planning on worlds that move: all choose among the same plans, at the same costs."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import pandas as pd

from agents.decision.frozen_network import freeze_topologies
from agents.decision.run_epochs import run_course
from agents.decision.situation import Scheduler
from agents.decision.world import DecisionWorld
from agents.judge.steady_judge import SteadyJudge
from agents.judge.step_times import mean_step
from agents.planners.names import (
    MOVING_NAMES,
    PLANNER_NAMES,
    POLICY,
    SCHEDULER_NAMES,
    SEARCH_BOUND,
)
from agents.replanning.bound_schedulers import (
    bound_scheduler,
    pool_binder,
    search_bound_scheduler,
)
from agents.replanning.known_times import KnownTimes
from agents.replanning.pool import Pool, candidate_pool
from agents.replanning.rules import Rule
from agents.replanning.table import HORIZON_EPOCHS, RULES, SCHEDULERS
from agents.replanning.tables import EpisodeTables, costs_of, foreseen, tables_of
from agents.replanning.training_schedulers import SAMPLE_SHIFT
from agents.replanning.whole_pool import whole_pool
from agents.search.trainer_search import TrainerSearch
from agents.trainers.table import trainer_named
from des import NO_CORRECTIONS, Corrections
from des.base.lazy import lazy_imports
from des.compiled.many.layout import Whole
from scenarios.study.compare.cases import FORESEEN, ComparedDraw
from scenarios.study.trained_plans import trained_world
from scenarios.suites import SuiteWorld

with lazy_imports(__name__):
    from agents.hi_ppo import whole_proposals
    from scenarios.study.compare import head_to_head

CLAIRVOYANT = "clairvoyant"
"""Knows the whole draw; the bound that the others are compared with."""

STATIC = "static"

DUELLISTS = (POLICY, *PLANNER_NAMES)
"""Policies and planners of `scenarios.study.compare.head_to_head`."""

DECIDERS = (*SCHEDULER_NAMES, *MOVING_NAMES, SEARCH_BOUND)
"""Schedulers, which make plans of their own."""

MOST_PLANS = 128
"""Candidates of a draw, but for the few that are always there."""

MANY_DOMAINS = 10
"""Domains above which a draw's networks are searched for plans on a few of them alone, briefly."""

_FEW_SEARCHED, _FEW_JUDGED, _SOME_SEARCHED = 4, 20_000, 16


def online_rules() -> Mapping[str, Rule]:
    """Rules that know no more than the epochs up to the one they are in, and the law."""
    return MappingProxyType({name: rule for name, rule in RULES.items() if name != CLAIRVOYANT})


def foreseen_rules() -> Mapping[str, Rule]:
    """The same rules with foresight: they know all plans of the draw, also for later networks.

    Networks they know no better. `STATIC` is not among them, as it never moves.
    """
    named = online_rules().items()
    return MappingProxyType({f"{name}{FORESEEN}": rule for name, rule in named if name != STATIC})


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One draw of a world in numbers.

    Attributes
    ----------
    tables
        With the epochs from which on plans are known.
    samples
        Tables of the same plans on another draw of the same world: the law, for who may know it.
    """

    tables: EpisodeTables
    samples: EpisodeTables


def draw_of(
    world: DecisionWorld,
    draw_seed: int,
    pool: Pool,
    corrections: Corrections = NO_CORRECTIONS,
    times: KnownTimes | None = None,
) -> Draw:
    """Judge candidates in all epochs of a draw and of a sample; ``times`` as in `tables_of`."""
    judged = partial(tables_of, world, plans=pool.plans, corrections=corrections, times=times)
    return Draw(
        tables=judged(draw_seed, known_from=pool.known_from),
        samples=judged(draw_seed + SAMPLE_SHIFT),
    )


def dynamic_rows(case: ComparedDraw) -> pd.DataFrame:
    """Let rules walk through a draw of a world, and schedulers make plans of their own in it.

    Returns
    -------
    pandas.DataFrame
        One row per rule or scheduler. ``best_s`` is the total time of the clairvoyant, which
        chooses among the rules' plans. ``decision_time_s`` is a timing: the mean time of a decision
        once the plans are found and judged; ``candidates_time_s`` what finding them took for the
        whole draw.
    """
    trainer = trainer_named(case.trainer)
    world = trained_world(case.world(), trainer)
    if case.num_epochs is not None:
        world = replace(world, num_epochs=min(world.num_epochs, case.num_epochs))
    begin_s = time.perf_counter()
    judge = SteadyJudge(world.workload, world.num_domains)
    pool = _pool_of(case, world, judge)
    if not trainer.is_ideal:
        pool = pool_binder(world, TrainerSearch(trainer=trainer))(pool)
    candidates_s = time.perf_counter() - begin_s
    draw = draw_of(world, case.draw, pool, times=KnownTimes(judge))
    paths, seconds = walk(
        draw, [name for name in case.methods if name not in (*DECIDERS, *DUELLISTS)]
    )
    best_s = costs_of(draw.tables, RULES[CLAIRVOYANT](draw.tables)).total_s
    rows = []
    for name, path in paths.items():
        costs = costs_of(draw.tables, path)
        rows.append(
            {
                **case.about(world),
                "method": name,
                "best_s": best_s,
                "time_s": costs.total_s,
                "change_s": costs.change_s,
                "utilisation": costs.utilisation,
                "cost_bytes_per_token": costs.bytes_per_token,
                **{f"num_{level}": count for level, count in costs.moves.items()},
                "num_candidates": draw.tables.num_plans,
                "decision_time_s": seconds[name] / world.num_epochs,
                "candidates_time_s": candidates_s,
            }
        )
    rows += [
        {**case.about(world), **scheduler_row(case, world, name), "best_s": best_s}
        for name in case.methods
        if name in (*DECIDERS, *DUELLISTS)
    ]
    return pd.DataFrame(rows)


def _pool_of(case: ComparedDraw, world: SuiteWorld, judge: SteadyJudge) -> Pool:
    """Candidates of a draw: pipelines, and on real sites the best plans of all families too."""
    is_large = world.num_domains > MANY_DOMAINS
    networks = freeze_topologies(world, case.draw)
    pool = candidate_pool(
        world,
        case.draw,
        judge=judge,
        max_plans=MOST_PLANS,
        max_searched=_FEW_SEARCHED if is_large else None,
        max_judged=_FEW_JUDGED if is_large else None,
        networks=networks,
    )
    if not case.has_sites:
        return pool
    whole = whole_pool(
        world,
        case.draw,
        families=case.families,
        max_searched=_FEW_SEARCHED if is_large else _SOME_SEARCHED,
        networks=networks,
    )
    return pool.joined(dict(zip(whole.plans, whole.known_from, strict=True)))


def scheduler_row(case: ComparedDraw, world: DecisionWorld, name: str) -> dict[str, object]:
    """Figures of a scheduler on a draw; plans over memory are judged as if they fitted."""
    trainer = trainer_named(case.trainer)
    search = TrainerSearch(trainer=trainer)
    if name == SEARCH_BOUND:
        scheduler: Scheduler = search_bound_scheduler(search, HORIZON_EPOCHS)
    elif name in DUELLISTS:
        scheduler = head_to_head.equal_scheduler(name, trainer)
    elif name in MOVING_NAMES:
        scheduler = whole_proposals.moving_scheduler(name, case.families)
    else:
        scheduler = SCHEDULERS[name]()
    if name != SEARCH_BOUND and name not in DUELLISTS:
        scheduler = bound_scheduler(scheduler, search)
    course = run_course(world, case.draw, scheduler, must_fit=False, mean_step=mean_step)
    return {
        "method": name,
        "time_s": course.total_s,
        "change_s": course.change_s,
        "utilisation": course.utilisation,
        "cost_bytes_per_token": course.bytes_per_token,
        **{f"num_{level}": count for level, count in course.moves.items()},
        "num_candidates": len(set(course.plans)),
        "decision_time_s": sum(row.decision_s for row in course.rows) / len(course.rows),
        "candidates_time_s": 0.0,
    }


def walk(draw: Draw, names: Sequence[str]) -> tuple[dict[str, Whole], dict[str, float]]:
    """Return the paths of rules by name, and the wall time of each. [s]

    Those of `foreseen_rules` know all plans from the first epoch on, those of `online_rules` each
    from the epoch that yields it.
    """
    paths, seconds = dict[str, Whole](), dict[str, float]()
    all_known, rules = foreseen(draw.tables), {**RULES, **foreseen_rules()}
    for name in names:
        tables = all_known if name in foreseen_rules() else draw.tables
        begin_s = time.perf_counter()
        paths[name] = rules[name](tables, draw.samples)
        seconds[name] = time.perf_counter() - begin_s
    return paths, seconds
