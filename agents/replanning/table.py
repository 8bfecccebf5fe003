"""Rules of re-planning: which plan to go on with, epoch after epoch, when changes cost time."""

from collections.abc import Mapping
from types import MappingProxyType

from agents.replanning.clairvoyant import clairvoyant
from agents.replanning.follow_the_leader import FollowTheLeader
from agents.replanning.horizon import Horizon, greedy, hold
from agents.replanning.rules import Rule
from agents.replanning.value_iteration import value_iteration

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
