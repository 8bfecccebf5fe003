"""Whole episodes against a clairvoyant, and against every rule of re-planning."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from agents.decision.frozen_network import freeze_topology
from agents.decision.run_epochs import CourseResult, run_course
from agents.judge.steady_judge import SteadyJudge
from agents.replanning.bound_schedulers import pool_binder
from agents.replanning.known_times import KnownTimes
from agents.replanning.pool import MOST_JUDGED, Pool, candidate_pool
from agents.replanning.table import RULES
from agents.replanning.tables import total_s
from des import Plan
from scenarios.frame.statistics import MeanInterval
from scenarios.study.compare.cases import FORESEEN
from scenarios.study.compare.dynamic_part import (
    CLAIRVOYANT,
    MOST_PLANS,
    draw_of,
    foreseen_rules,
    online_rules,
    walk,
)
from scenarios.study.targets.measurement_size import LARGE, SMALL, SchedulerColumn, Scope
from scenarios.study.targets.references import best_known_plan
from scenarios.study.targets.target import TIMES, Goal, Target, mean_fields, measured
from scenarios.study.targets.unforeseen import unforeseen_s, why_unlisted
from scenarios.study.targets.versus_rules import (
    RuleComparison,
    Rules,
    behind_hindsight,
    best_single,
    in_hindsight,
    less,
    spread,
    without_foresight,
    world_means,
)
from scenarios.suites import SuiteWorld

LIVELY = ("eval_held", "hard", "cheap_moves")
"""Suites in which there is something to win by moving."""

WITHIN_HINDSIGHT = 0.005
"""Stretch target: distance to the best rule of each world in hindsight."""

STATIC = "static"
"""The rule that never moves."""

MIXED, LARGE_EVERY = "hard", 4
"""The suite of which some worlds have `LARGE` domains, and every which one it is."""

_NUM_TIMED = 4

SPARED = 100.0
"""Target speed-up of a decision over search."""


def against_rules(
    column: SchedulerColumn, world: SuiteWorld, draw: int, *, is_lively: bool = True
) -> RuleComparison:
    """Measure a draw of a world; in a lively suite also rules on own proposals, and wall times."""
    episode = column.episode(world, draw)
    part = replace(world, num_epochs=len(episode.rows))
    key = (world.name, draw, part.num_epochs)
    pool = column.scope.once(("candidates", *key), lambda: _candidates(column.scope, part, draw))
    times = column.scope.once(
        ("times of plans", world.name, part.num_epochs),
        lambda: KnownTimes(SteadyJudge(part.workload, part.num_domains)),
    )
    tabled = draw_of(part, draw, pool.joined(_first_used(episode)), times=times)
    best_s = total_s(tabled.tables, RULES[CLAIRVOYANT](tabled.tables))
    least_s = unforeseen_s(part, draw, tabled.tables, times)
    paths, _ = walk(tabled, (*online_rules(), *foreseen_rules()))
    excess = {name: total_s(tabled.tables, path) / best_s - 1.0 for name, path in paths.items()}
    return RuleComparison(
        world=world.name,
        own=episode.total_s / best_s - 1.0,
        rules={name: excess[name] for name in online_rules()},
        foreseen={name.removesuffix(FORESEEN): excess[name] for name in foreseen_rules()},
        fixed={
            name: column.episode(world, draw, name).total_s / best_s - 1.0
            for name in (column.fixed_rules if is_lively else ())
        },
        unforeseen=math.nan if least_s is None else least_s / best_s - 1.0,
        why_unlisted=why_unlisted(part),
        decision_s=_decision_s(column, part, draw) if is_lively else math.nan,
        search_s=column.scope.once(("search", *key), lambda: _search_s(column.scope, part, draw))
        if is_lively
        else math.nan,
    )


def _first_used(episode: CourseResult) -> dict[Plan, int]:
    """The epoch in which each plan of an episode is first in force."""
    first: dict[Plan, int] = {}
    for epoch, plan in enumerate(episode.plans):
        first.setdefault(plan, epoch)
    return first


def _candidates(scope: Scope, world: SuiteWorld, draw: int) -> Pool:
    """Plans that rules choose among, as the trainer runs them."""
    pool = candidate_pool(world, draw, max_plans=MOST_PLANS)
    return pool if scope.trainer.is_ideal else pool_binder(world, scope.search)(pool)


def _search_s(scope: Scope, world: SuiteWorld, draw: int) -> float:
    """Mean wall time of a whole search, as a rule would need it, over the first epochs. [s]"""
    seconds = []
    for epoch in range(_num_timed(scope, world)):
        topology = freeze_topology(world, draw, epoch)
        begin_s = time.perf_counter()
        best_known_plan(scope, topology, world.workload)
        seconds.append(time.perf_counter() - begin_s)
    return float(np.mean(seconds))


def _decision_s(column: SchedulerColumn, world: SuiteWorld, draw: int) -> float:
    """Mean wall time of a decision without a cache, over the same epochs. [s]"""
    num_epochs, scheduler = _num_timed(column.scope, world), column.timed_scheduler()
    timed = run_course(world, draw, scheduler, num_epochs=num_epochs, must_fit=False)
    return float(np.mean([epoch.decision_s for epoch in timed.rows]))


def _num_timed(scope: Scope, world: SuiteWorld) -> int:
    return min(1 if scope.is_short else _NUM_TIMED, world.num_epochs)


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the calm suite, the lively ones and the one in which there is nothing to win."""
    scope = column.scope
    found = {
        name: [
            against_rules(column, world, draw, is_lively=name in LIVELY)
            for world in worlds_of(scope, name)
            for draw in scope.draws(world)
        ]
        for name in ("eval_calm", *LIVELY, "null")
    }
    lively = {name: found[name] for name in LIVELY}
    return [
        _over_static("eval_calm", found["eval_calm"], stretch=0.002),
        _over_best_rule(lively),
        _over_search([one for name in LIVELY for one in found[name]]),
        _over_static("null", found["null"], stretch=0.001),
    ]


def worlds_of(scope: Scope, name: str) -> tuple[SuiteWorld, ...]:
    """Worlds of `SMALL` of a suite; of `MIXED` every fourth has `LARGE` domains.

    A world from a file takes their place, whatever its size.
    """
    small = scope.worlds(name, domains=SMALL)
    if scope.world is not None:
        return small or scope.worlds(name, domains=(LARGE,))
    num_large = len(small) // LARGE_EVERY
    if name != MIXED or not num_large:
        return small
    large = scope.worlds(name, num_large, (LARGE,))
    mixed = list(small[: len(small) - num_large])
    for block, world in enumerate(large, start=1):
        own_name = replace(world, name=f"{world.name}-{LARGE}")  # a small one has its number too
        mixed.insert(LARGE_EVERY * block - 1, own_name)
    return tuple(mixed)


def _over_static(name: str, draws: Sequence[RuleComparison], stretch: float) -> Target:
    over = [(1.0 + one.own) / (1.0 + one.rules[STATIC]) - 1.0 for one in draws]
    return Target(
        name=f"{name}: over the static optimum",
        definition="total time, moves included, over that of the plan that is best at base "
        "figures, held, less 1; in the notes over the clairvoyant",
        reference="the static optimum, never moved",
        goal=Goal(sense="at most", target=0.01, stretch=stretch),
        **mean_fields(world_means(draws, over)),
        notes=(
            f"{len(draws)} draws",
            *_own_and_rules(draws),
            *without_foresight(name, draws),
        ),
    )


def _over_best_rule(found: Mapping[str, Sequence[RuleComparison]]) -> Target:
    """Compare with the best rule that foresees nothing; all others are in the notes."""
    lively = [one for draws in found.values() for one in draws]
    rules = [one.rules for one in lively]
    best = best_single(lively, rules)
    ours = mean_fields(world_means(lively, less(lively, rules, best)))
    behind, behind_spread = behind_hindsight(lively, rules)
    within = 0.0 if not lively else min(0.0, ours["value"] - behind + WITHIN_HINDSIGHT)
    return Target(
        name="over the best single rule",
        definition="excess over the clairvoyant, less that of the rule that is best on the mean of "
        "eval_held, hard and cheap_moves together; rules know the plans that networks up to now "
        f"yield, found by a search of each, over {LARGE} domains of at most {MOST_JUDGED:,} plans",
        reference=f"the best of {', '.join(online_rules())}, the same for all; here {best}",
        goal=Goal(sense="below", target=0.0, stretch=within),
        **ours,
        notes=(
            "against the best rule of each world, chosen in hindsight: "
            f"{_points(behind, behind_spread)}; within {100 * WITHIN_HINDSIGHT:g} points "
            "is the stretch target",
            *_against_others(lively),
            *(line for name, draws in found.items() for line in _suite_lines(name, draws)),
        ),
    )


def _against_others(lively: Sequence[RuleComparison]) -> list[str]:
    """Notes on rules that know more than the scheduler, and on those that know as much."""
    foreseen, fixed = [one.foreseen for one in lively], [one.fixed for one in lively]
    notes = []
    if any(foreseen):
        best = best_single(lively, foreseen)
        over = measured(world_means(lively, less(lively, foreseen, best)))
        notes.append(
            f"against rules that know all plans of the draw from the start: the best, {best}, "
            f"{_points(*over)}; the best of each world in hindsight "
            f"{_points(*behind_hindsight(lively, foreseen))}"
        )
    if any(fixed):
        over_each = [
            f"{name} {_points(*measured(world_means(lively, less(lively, fixed, name))))}"
            for name in fixed[0]
        ]
        notes.append(
            "against fixed rules on the proposals of the same placement policy: "
            + ", ".join(over_each)
        )
    return notes


def _suite_lines(name: str, draws: Sequence[RuleComparison]) -> list[str]:
    """All figures of a suite, a line for each kind of rules."""
    if not draws:
        return []
    lines = [f"{name}: own {_percent([one.own for one in draws])}, {len(draws)} draws"]
    for kind, rules in (
        ("rules", [one.rules for one in draws]),
        ("that know all plans of the draw", [one.foreseen for one in draws]),
        ("on own proposals", [one.fixed for one in draws]),
    ):
        if any(rules):
            hindsight = _percent(list(in_hindsight(draws, rules).values()))
            lines.append(
                f"{name}, {kind}: {_rules_line(rules)}; best of each world in hindsight {hindsight}"
            )
    return lines + without_foresight(name, draws)


def _over_search(lively: Sequence[RuleComparison]) -> Target:
    value, interval = measured(
        world_means(lively, [one.search_s / one.decision_s for one in lively])
    )
    return Target(
        name="decision time against a re-run search",
        definition="wall time of the search that a rule needs for its plans, over that of a "
        "decision, both over the first epochs of a draw",
        reference="search in every epoch, with its whole budget",
        goal=Goal(sense="at least", target=SPARED),
        value=value,
        interval=interval,
        unit=TIMES,
        notes=(f"{len(lively)} draws",),
    )


def _own_and_rules(draws: Sequence[RuleComparison]) -> tuple[str, ...]:
    if not draws:
        return ()
    return f"own {_percent([one.own for one in draws])}", _rules_line([one.rules for one in draws])


def _rules_line(rules: Rules) -> str:
    return ", ".join(f"{name} {_percent([one[name] for one in rules])}" for name in rules[0])


def _points(value: float, interval: MeanInterval | None) -> str:
    return f"{100 * value:+.2f}{spread(interval)} points"


def _percent(values: Sequence[float]) -> str:
    return f"{100 * float(np.mean(values)):+.2f} %"
