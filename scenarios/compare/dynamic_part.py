"""Rules of re-planning on worlds that move: all choose among the same plans, at the same costs."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pandas as pd

from agents.epochs import DecisionWorld
from agents.epochs.pool import pool_of
from agents.epochs.tables import EpisodeTables, costs_of, tables_of
from agents.kernels.layout import Whole
from agents.planners.replan import RULES, Rule
from des import Plan
from scenarios.compare.cases import Case

CLAIRVOYANT = "clairvoyant"
"""Knows the whole draw; the bound that the others are compared with."""

STATIC = "static"

MOST_PLANS = 128
"""Candidates of a draw, but for the few that are always there."""

_SAMPLE_SHIFT = 1 << 40
"""Draws for rules that know the law are others than any that is judged."""


def online_rules() -> Mapping[str, Rule]:
    """Rules that know no more than the epoch they are in, and the law."""
    return MappingProxyType({name: rule for name, rule in RULES.items() if name != CLAIRVOYANT})


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One draw of a world in numbers.

    Attributes
    ----------
    samples
        Tables of the same plans on another draw of the same world: the law, for who may know it.
    candidates_s
        Wall time of the search for the plans, a timing. [s]
    """

    tables: EpisodeTables
    samples: EpisodeTables
    candidates_s: float


def draw_of(
    world: DecisionWorld, draw_seed: int, extra: Sequence[Plan] = (), max_plans: int = MOST_PLANS
) -> Draw:
    """Find candidates for a draw, and judge them in all epochs of it and of a sample.

    Parameters
    ----------
    extra
        Plans that are candidates whatever else is, such as those of a method that is compared.
    """
    begin_s = time.perf_counter()
    plans = pool_of(world, draw_seed, extra=extra, max_plans=max_plans)
    took_s = time.perf_counter() - begin_s
    return Draw(
        tables=tables_of(world, draw_seed, plans),
        samples=tables_of(world, draw_seed + _SAMPLE_SHIFT, plans),
        candidates_s=took_s,
    )


def dynamic_rows(case: Case) -> pd.DataFrame:
    """Let rules walk through a draw of a world.

    Returns
    -------
    pandas.DataFrame
        One row a rule. ``best_s`` is the total time of the clairvoyant. ``decision_time_s`` is a
        timing: the mean time of a decision once the plans are found and judged;
        ``candidates_time_s`` what finding them took for the whole draw.
    """
    world = case.world()
    if case.num_epochs is not None:
        world = replace(world, num_epochs=min(world.num_epochs, case.num_epochs))
    draw = draw_of(world, case.draw)
    paths, seconds = walk(draw, case.methods)
    best_s = costs_of(draw.tables, RULES[CLAIRVOYANT](draw.tables)).total_s
    rows = []
    for name, path in paths.items():
        costs = costs_of(draw.tables, path)
        rows.append(
            {
                "case": case.name,
                "suite": case.suite,
                "world": world.name,
                "draw": case.draw,
                "num_domains": world.num_domains,
                "ratio": world.ratio,
                "method": name,
                "best_s": best_s,
                "time_s": costs.total_s,
                "change_s": costs.change_s,
                "utilisation": costs.utilisation,
                "cost_bytes_per_token": costs.bytes_per_token,
                **{f"num_{level}": count for level, count in costs.moves.items()},
                "num_candidates": draw.tables.num_plans,
                "decision_time_s": seconds[name] / world.num_epochs,
                "candidates_time_s": draw.candidates_s,
            }
        )
    return pd.DataFrame(rows)


def walk(draw: Draw, names: Sequence[str]) -> tuple[dict[str, Whole], dict[str, float]]:
    """Return the paths of rules by name, and the wall time of each. [s]"""
    paths, seconds = dict[str, Whole](), dict[str, float]()
    for name in names:
        begin_s = time.perf_counter()
        paths[name] = RULES[name](draw.tables, draw.samples)
        seconds[name] = time.perf_counter() - begin_s
    return paths, seconds
