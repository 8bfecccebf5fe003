"""Whole episodes against a clairvoyant, and against every rule of re-planning."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.epochs.tables import held_topology, total_s
from agents.planners.replan import RULES
from agents.planners.search import search
from scenarios.compare.dynamic_part import CLAIRVOYANT, draw_of, online_rules, walk
from scenarios.kpi.scope import LARGE, SMALL, Column
from scenarios.kpi.target import TIMES, Asked, Target, measured
from scenarios.statistics import Interval
from scenarios.suites import SuiteWorld

LIVELY = ("eval_held", "hard", "cheap_moves")
"""Suites in which there is something to win by moving."""

WITHIN_HINDSIGHT = 0.005
"""Of the best rule of each world in hindsight, to go beyond what is asked."""

STATIC = "static"
"""The rule that never moves."""

_NUM_TIMED = 4

SPARED = 100.0
"""How many times less decision time than a re-run search is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """One draw of a world: times of all methods over that of the clairvoyant, less 1.

    All choose among the same plans, those of the scheduler included; a scheduler that takes only
    those can be no quicker than the clairvoyant.

    Attributes
    ----------
    decision_s, search_s
        Mean wall time of a decision: of the scheduler, and of the search that a rule needs for its
        plans in every epoch. [s]
    """

    world: str
    own: float
    rules: dict[str, float]
    decision_s: float
    search_s: float


def against_rules(column: Column, world: SuiteWorld, draw: int) -> Against:
    """Measure a draw of a world."""
    episode = column.episode(world, draw)
    part = replace(world, num_epochs=len(episode.epochs))
    tabled = draw_of(part, draw, extra=list(dict.fromkeys(episode.plans)))
    best_s = total_s(tabled.tables, RULES[CLAIRVOYANT](tabled.tables))
    paths, _ = walk(tabled, tuple(online_rules()))
    return Against(
        world=world.name,
        own=episode.total_s / best_s - 1.0,
        rules={name: total_s(tabled.tables, path) / best_s - 1.0 for name, path in paths.items()},
        decision_s=float(np.mean([epoch.decision_s for epoch in episode.epochs])),
        search_s=column.scope.once(
            ("search", world.name, draw, part.num_epochs), lambda: _search_s(part, draw)
        ),
    )


def _search_s(world: SuiteWorld, draw: int) -> float:
    """Mean wall time of a search over the first epochs of a draw. [s]"""
    seconds = []
    for epoch in range(min(_NUM_TIMED, world.num_epochs)):
        topology = held_topology(world, draw, epoch)
        begin_s = time.perf_counter()
        search(topology, world.workload)
        seconds.append(time.perf_counter() - begin_s)
    return float(np.mean(seconds))


def measure(column: Column) -> list[Target]:
    """Measure the calm suite, the lively ones and the one in which there is nothing to win."""
    scope = column.scope
    found: dict[str, list[Against]] = {}
    for name in ("eval_calm", *LIVELY, "null"):
        worlds = scope.worlds(name, domains=SMALL) or scope.worlds(name, domains=(LARGE,))
        found[name] = [
            against_rules(column, world, draw) for world in worlds for draw in scope.draws(world)
        ]
    lively = [one for name in LIVELY for one in found[name]]
    return [
        _over_static("eval_calm", found["eval_calm"], beyond=0.002),
        *_against_best_rule(found, lively),
        _over_static("null", found["null"], beyond=0.001),
    ]


def _over_static(name: str, draws: Sequence[Against], beyond: float) -> Target:
    over = [(1.0 + one.own) / (1.0 + one.rules[STATIC]) - 1.0 for one in draws]
    value, interval = measured(world_means(draws, over))
    clairvoyant = (f"own {_percent([one.own for one in draws])}",) if draws else ()
    return Target(
        name=f"{name}: over the static optimum",
        definition="total time, moves included, over that of the plan that is best at base "
        "figures, held, less 1; in the notes over the clairvoyant",
        reference="the static optimum, never moved",
        asked=Asked(sense="at most", reach=0.01, beyond=beyond),
        value=value,
        interval=interval,
        notes=(f"{len(draws)} draws", *clairvoyant, *_rules_shown(draws)),
    )


def _against_best_rule(found: dict[str, list[Against]], lively: Sequence[Against]) -> list[Target]:
    best = best_single(lively)
    points = [one.own - one.rules[best] for one in lively] if best else []
    hindsight = [one.own - in_hindsight(lively, one.world) for one in lively]
    ours, spread = measured(world_means(lively, points))
    behind, behind_spread = measured(world_means(lively, hindsight))
    faster = [one.search_s / one.decision_s for one in lively]
    times, times_spread = measured(world_means(lively, faster))
    by_suite = tuple(
        f"{name}: own {_percent([one.own for one in found[name]])}; {_rules_line(found[name])}"
        for name in LIVELY
        if found[name]
    )
    within = 0.0 if not lively else min(0.0, ours - behind + WITHIN_HINDSIGHT)
    return [
        Target(
            name="over the best single rule",
            definition="excess over the clairvoyant, less that of the rule that is best on the "
            "mean of eval_held, hard and cheap_moves together",
            reference=f"the best of {', '.join(online_rules())}, the same for all; here {best}",
            asked=Asked(sense="below", reach=0.0, beyond=within),
            value=ours,
            interval=spread,
            notes=(
                "against the best rule of each world, chosen in hindsight: "
                f"{_points(behind, behind_spread)}; within {100 * WITHIN_HINDSIGHT:g} points is "
                "beyond",
                *by_suite,
            ),
        ),
        Target(
            name="decision time against a re-run search",
            definition="wall time of the search that a rule needs for its plans, over that of a "
            "decision",
            reference="search in every epoch",
            asked=Asked(sense="at least", reach=SPARED),
            value=times,
            interval=times_spread,
            unit=TIMES,
            notes=(f"{len(lively)} draws",),
        ),
    ]


def best_single(draws: Sequence[Against]) -> str:
    """Name the rule of least mean excess, the same for all worlds; empty where there is no draw."""
    if not draws:
        return ""
    return min(
        draws[0].rules,
        key=lambda name: float(np.mean(world_means(draws, [one.rules[name] for one in draws]))),
    )


def in_hindsight(draws: Sequence[Against], world: str) -> float:
    """Least mean excess that one rule has over the draws of a world."""
    own = [one for one in draws if one.world == world]
    return min(float(np.mean([one.rules[name] for one in own])) for name in own[0].rules)


def world_means(draws: Sequence[Against], values: Sequence[float]) -> list[float]:
    """Mean of values over the draws of each world."""
    grouped: dict[str, list[float]] = {}
    for one, value in zip(draws, values, strict=True):
        grouped.setdefault(one.world, []).append(value)
    return [float(np.mean(each)) for each in grouped.values()]


def _rules_shown(draws: Sequence[Against]) -> tuple[str, ...]:
    return (_rules_line(draws),) if draws else ()


def _rules_line(draws: Sequence[Against]) -> str:
    names = draws[0].rules
    return ", ".join(f"{name} {_percent([one.rules[name] for one in draws])}" for name in names)


def _points(value: float, interval: Interval | None) -> str:
    spread = "" if interval is None else f" ± {100 * interval.half_width:.2f}"
    return f"{100 * value:+.2f}{spread} points"


def _percent(values: Sequence[float]) -> str:
    return f"{100 * float(np.mean(values)):+.2f} %"
