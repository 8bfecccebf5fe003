"""Which of some rules was best, for who knows how it ended."""

from collections.abc import Mapping

from agents.replanning.rules import Rule
from agents.replanning.tables import EpisodeTables, total_s
from des.compiled.many.layout import Whole


def best_rule_in_hindsight(
    tables: EpisodeTables, rules: Mapping[str, Rule], samples: EpisodeTables | None = None
) -> tuple[str, Whole]:
    """Name and path of the rule that cost least, of equals the first; no rule can be it beforehand.

    Raises
    ------
    ValueError
        If there are no rules.
    """
    if not rules:
        raise ValueError("best rule in hindsight: rules must hold at least one, got none")
    paths = {name: rule(tables, samples) for name, rule in rules.items()}
    best = min(paths, key=lambda name: total_s(tables, paths[name]))
    return best, paths[best]
