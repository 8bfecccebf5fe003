"""Rules of re-planning: which plan to go on with, epoch after epoch, when changes cost time."""

from collections.abc import Mapping
from types import MappingProxyType

from agents.planners.replan.clairvoyant import Clairvoyant, clairvoyant
from agents.planners.replan.follow_the_leader import FollowTheLeader
from agents.planners.replan.hindsight import best_rule_in_hindsight
from agents.planners.replan.horizon import Horizon, greedy, hold
from agents.planners.replan.replanning import SearchScheduler, replan, searching
from agents.planners.replan.rules import Rule
from agents.planners.replan.value_iteration import value_iteration

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "static": hold,
        "greedy": greedy,
        "H1": Horizon(1.0),
        "H4": Horizon(4.0),
        "H8": Horizon(8.0),
        "H16": Horizon(16.0),
        "H32": Horizon(32.0),
        "H64": Horizon(64.0),
        "FTL": FollowTheLeader(),
        "VI": value_iteration,
        "clairvoyant": clairvoyant,
    }
)
"""Rules by the name that tables have for them; the clairvoyant is the bound of the others."""

__all__ = [
    "RULES",
    "Clairvoyant",
    "FollowTheLeader",
    "Horizon",
    "Rule",
    "SearchScheduler",
    "best_rule_in_hindsight",
    "clairvoyant",
    "greedy",
    "hold",
    "replan",
    "searching",
    "value_iteration",
]
