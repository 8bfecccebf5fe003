"""One draw under a scheduler and under rules, and means over many draws."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scenarios.frame.statistics import MeanInterval
from scenarios.study.targets.target import measured

Rules = Sequence[Mapping[str, float]]
"""Excess of rules over the clairvoyant in some draws, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleComparison:
    """One draw of a world: times of all methods over that of the clairvoyant, less 1.

    The clairvoyant and the rules choose among the same plans, those of the scheduler included; a
    scheduler that takes only those can be no quicker than the clairvoyant.

    Attributes
    ----------
    rules
        Rules that know a plan from the epoch on whose network yields it; plans of the scheduler
        from the epoch on in which it first used them.
    foreseen
        Rules that know all plans of the draw from the first epoch on.
    fixed
        Rules on what the scheduler's own placement policy proposes under them; none where there is
        no such policy.
    unforeseen
        Best policy that knows the law but no coming epoch; NaN where the law cannot be listed.
    why_unlisted
        Reason why it cannot; empty where it can.
    decision_s, search_s
        Mean wall time of a decision: of the scheduler, and of the search that a rule needs for its
        plans in every epoch; NaN where they are not timed. [s]
    """

    world: str
    own: float
    rules: Mapping[str, float]
    foreseen: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    unforeseen: float = math.nan
    why_unlisted: str = ""
    decision_s: float
    search_s: float


def best_single(draws: Sequence[RuleComparison], rules: Rules) -> str:
    """Name the rule of least mean excess, the same for all worlds; empty where there is no draw."""
    if not draws:
        return ""
    return min(
        rules[0],
        key=lambda name: float(np.mean(world_means(draws, [one[name] for one in rules]))),
    )


def in_hindsight(draws: Sequence[RuleComparison], rules: Rules) -> dict[str, float]:
    """Least mean excess that one rule has over the draws of each world."""
    own: dict[str, list[Mapping[str, float]]] = {}
    for draw, one in zip(draws, rules, strict=True):
        own.setdefault(draw.world, []).append(one)
    return {
        world: min(float(np.mean([one[name] for one in each])) for name in each[0])
        for world, each in own.items()
    }


def behind_hindsight(
    draws: Sequence[RuleComparison], rules: Rules
) -> tuple[float, MeanInterval | None]:
    """Excess less that of the best rule of each world in hindsight, and its interval."""
    best = in_hindsight(draws, rules)
    return measured(world_means(draws, [one.own - best[one.world] for one in draws]))


def less(draws: Sequence[RuleComparison], rules: Rules, name: str) -> list[float]:
    """Excess of each draw less that of a rule."""
    return [draw.own - one[name] for draw, one in zip(draws, rules, strict=True)]


def world_means(draws: Sequence[RuleComparison], values: Sequence[float]) -> list[float]:
    """Mean of values over the draws of each world."""
    grouped: dict[str, list[float]] = {}
    for one, value in zip(draws, values, strict=True):
        grouped.setdefault(one.world, []).append(value)
    return [float(np.mean(each)) for each in grouped.values()]


def without_foresight(name: str, draws: Sequence[RuleComparison]) -> list[str]:
    """Note on the best policy that cannot foresee, where the laws of a suite can be listed."""
    listed = [one for one in draws if not math.isnan(one.unforeseen)]
    lines = []
    if listed:
        least, _ = measured(world_means(listed, [one.unforeseen for one in listed]))
        over = [(1.0 + one.own) / (1.0 + one.unforeseen) - 1.0 for one in listed]
        own, interval = measured(world_means(listed, over))
        lines.append(
            f"{name}, the best policy that cannot foresee, a dynamic program on the law: "
            f"{100 * least:+.2f} % over the clairvoyant, own {100 * own:+.2f}{spread(interval)} % "
            f"over that, {len(listed)} draws"
        )
    reasons = Counter(one.why_unlisted for one in draws if one.why_unlisted)
    if reasons:
        counts = ", ".join(f"{reason} ({count} draws)" for reason, count in reasons.items())
        lines.append(f"{name}, no such program: {counts}")
    return lines


def spread(interval: MeanInterval | None) -> str:
    """Show half an interval in percent; empty where there is none, or of a single world.

    Examples
    --------
    >>> spread(MeanInterval(mean=0.25, half_width=0.0125)), spread(None)
    (' ± 1.25', '')
    """
    if interval is None or math.isnan(interval.half_width):
        return ""
    return f" ± {100 * interval.half_width:.2f}"
