"""Whether plans stay good while the load moves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean

from agents.decision.frozen_network import freeze_topologies
from agents.decision.run_epochs import CourseResult, run_course
from agents.decision.situation import MakeScheduler
from agents.hi_ppo.schedulers import MOST_SLOWDOWN
from agents.replanning.search_schedulers import HoldPlan
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.targets.measurement_size import SchedulerColumn, on_still_links
from scenarios.study.targets.references import best_known_s, held_work_s
from scenarios.study.targets.target import Goal, Target, measured
from scenarios.suites import SuiteWorld

WITHIN = 0.10
"""A plan is stable whose iteration takes at most this share longer than the best of its epoch."""

SUITES = ("eval_calm", "eval_held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """Stability of one draw of a world of a suite.

    Attributes
    ----------
    is_stable
        Of each epoch: the plan fits, and takes at most `WITHIN` longer than the re-planned best.
    total_s, held_s, free_s
        Time of the scheduler, of the base plan held all the time, and of the best plan of every
        epoch with moves free. [s]
    """

    suite: str
    world: str
    is_stable: tuple[bool, ...]
    total_s: float
    held_s: float
    free_s: float


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the share of epochs that are stable under load of +-20 %, links standing still.

    Following every load costs more than it gains, so a policy keeps plans that are not stable.
    With a bound it is steady, at a price: both figures are those of one policy.
    """
    draws = _draws(column, column.make)
    definition = (
        "share of epochs in which the plan fits and its iteration is within 10 % of "
        "the optimum re-planned for that load with moves free"
    )
    bounded: tuple[Stability, ...] = ()
    notes = ["not measured: only trained policies have a bound on iteration times"]
    if column.make_bounded is not None:
        bounded = _draws(column, column.make_bounded)
        notes = [*_notes(bounded), *_prices(bounded, draws)]
        notes += [f"without bound: {one}" for one in _totals(draws)]
    return [
        _target("stable at load +-20 %", definition, draws, _notes(draws)),
        _target(
            "stable at load +-20 %, bounded",
            f"{definition}; a plan gives way whose iteration takes more than "
            f"{100 * MOST_SLOWDOWN:g} % longer than that of the quickest plan known, unless the "
            "change would leave next to nothing of an epoch",
            bounded,
            notes,
        ),
    ]


def _draws(column: SchedulerColumn, make: MakeScheduler) -> tuple[Stability, ...]:
    """Measure as many draws as the number of epochs needs, the suites in turn."""
    scope = column.scope
    suites = [[(name, on_still_links(world)) for world in scope.worlds(name)] for name in SUITES]
    worlds = [one for in_turn in zip(*suites, strict=True) for one in in_turn]
    draws, num_epochs = list[Stability](), 0
    for turn, (suite, world) in enumerate(cycle(worlds)):
        if num_epochs >= scope.sizes.num_load_epochs:
            break
        draw = scope.seed + turn // len(worlds)
        draws.append(stability_of(column, make, suite, world, draw))
        num_epochs += len(draws[-1].is_stable)
    return tuple(draws)


def _target(name: str, definition: str, draws: Sequence[Stability], notes: Sequence[str]) -> Target:
    shares = [sum(one.is_stable) / len(one.is_stable) for one in draws]
    _, interval = measured(shares)
    return Target(
        name=name,
        definition=definition,
        reference="search in every epoch, moves free",
        goal=Goal(sense="at least", target=0.99, stretch=0.999),
        value=_share(draws),
        interval=interval,
        values=tuple(shares),
        notes=tuple(notes),
    )


def _notes(draws: Sequence[Stability]) -> list[str]:
    """Notes on the share: its number of epochs, the share of each suite, and the costs."""
    num_epochs = sum(len(one.is_stable) for one in draws)
    suites = {one.suite: [each for each in draws if each.suite == one.suite] for one in draws}
    return [
        f"{num_epochs} epochs of {len(draws)} draws",
        *(f"{name}: {100 * _share(part):.2f} % stable" for name, part in suites.items()),
        *_totals(draws),
    ]


def _prices(bounded: Sequence[Stability], free: Sequence[Stability]) -> list[str]:
    """Time that the bound costs, suite by suite: draws of one world are no new evidence."""
    excess: dict[str, dict[str, list[float]]] = {}
    for one, other in zip(bounded, free, strict=True):
        of_world = excess.setdefault(one.suite, {}).setdefault(one.world, [])
        of_world.append(100.0 * (one.total_s / other.total_s - 1.0))
    return [_price_line(suite, list(map(fmean, of.values()))) for suite, of in excess.items()]


def _price_line(suite: str, prices: Sequence[float]) -> str:
    """Say what the bound costs in the worlds of a suite. [%]"""
    ended = [one for one in prices if math.isfinite(one)]
    never = (
        f"; no work is done in {len(prices) - len(ended)} of {len(prices)}"
        if ended != prices
        else ""
    )
    if not ended:
        return f"{suite}: no work is done within the bound"
    found = mean_and_interval(ended)
    spread = f" ± {found.half_width:.2f}" if len(ended) > 1 else ""
    return f"{suite}: the bound costs {found.mean:+.2f} % of the time{spread}{never}"


def _share(draws: Sequence[Stability]) -> float:
    """Share of all epochs that are stable; NaN of none."""
    num_epochs = sum(len(one.is_stable) for one in draws)
    return sum(sum(one.is_stable) for one in draws) / num_epochs if num_epochs else float("nan")


def _totals(draws: Sequence[Stability]) -> list[str]:
    """Compare total time with the other columns."""
    if not draws:
        return []
    total_s, held_s, free_s = (
        sum(getattr(one, name) for one in draws) for name in ("total_s", "held_s", "free_s")
    )
    return [
        f"total time: {100 * (total_s / held_s - 1):+.2f} % against the base plan held, "
        f"{100 * (total_s / free_s - 1):+.2f} % against free moves"
    ]


def stability_of(
    column: SchedulerColumn, make: MakeScheduler, suite: str, world: SuiteWorld, draw: int
) -> Stability:
    """Measure one draw."""
    num_epochs = min(world.num_epochs, column.scope.sizes.num_epochs)
    scope = column.scope
    episode = run_course(world, draw, scope.as_run(make)(), num_epochs=num_epochs, must_fit=False)

    def references() -> tuple[float, list[float]]:
        hold = scope.as_run(HoldPlan)()
        held = run_course(world, draw, hold, num_epochs=num_epochs, must_fit=False)
        networks = freeze_topologies(world, draw, num_epochs)
        return held.total_s, [best_known_s(scope, one, world.workload) for one in networks]

    held_s, best_s = scope.once(("stable", world.name, draw, num_epochs), references)
    return Stability(
        suite=suite,
        world=world.name,
        is_stable=stable_epochs(episode, best_s),
        total_s=episode.total_s,
        held_s=held_s,
        free_s=held_work_s(world, best_s),
    )


def stable_epochs(episode: CourseResult, best_s: list[float]) -> tuple[bool, ...]:
    """Mark the stable epochs of an episode, given the best iteration time of each. [s]"""
    return tuple(
        epoch.fits_memory and epoch.iteration_s <= (1.0 + WITHIN) * best
        for epoch, best in zip(episode.rows, best_s, strict=True)
    )
