"""Planners whose plan is held, planners that are repeated, and trained policies, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from agents.decision.problem import Planner
from agents.decision.situation import MakeScheduler
from agents.planners.table import PLANNERS, quick_planners
from agents.replanning.search_schedulers import searched_anew
from agents.replanning.table import SCHEDULERS

HELD = "search_once"
"""The strongest search at base figures, held; every planner's plan is held as well."""

_DEFAULT_REPEATED = ("search_h8", "atlas_h8", "formula_h8")


def held_planners() -> Mapping[str, Planner]:
    """Planners that plan once, at base figures, each with the schedule that suits it best."""
    planners = {name: row.over_depths for name, row in PLANNERS.items()}
    return MappingProxyType({**planners, HELD: searched_anew})


def replanning() -> Mapping[str, MakeScheduler]:
    """Schedulers that decide in every epoch."""
    return MappingProxyType({name: make for name, make in SCHEDULERS.items() if name != HELD})


def planner_names() -> tuple[str, ...]:
    """Names of all planners, those that are repeated first."""
    return (*replanning(), *held_planners())


def default_names() -> tuple[str, ...]:
    """Names measured by default: planners of milliseconds, held, and some that are repeated."""
    return (*_DEFAULT_REPEATED, *quick_planners(), HELD)
