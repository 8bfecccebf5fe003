"""Verdict on the plan in force: stay, or move to a better one, with the reason in a line."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

from agents.replanning.move_cost import MoveCost
from agents.replanning.payoff import pays
from des.base.checks import require_non_negative, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoffRule:
    """Rule by which a move is taken.

    Attributes
    ----------
    horizon_s
        Time for which figures are thought to stay as they are. [s]
    confidence
        Chance that a move pays, by the spread of the measurements, below which none is made.
    patience
        Share of its cost that staying must have lost before a move is made; 0 moves at once. A
        congestion that ends sooner than that is waited for, and one that does not costs at most
        this share of a move.
    """

    horizon_s: float = 86_400.0
    confidence: float = 0.9
    patience: float = 0.5

    def __post_init__(self) -> None:
        require_positive("rule", "horizon_s", self.horizon_s)
        require_non_negative("rule", "patience", self.patience)
        if not 0.5 <= self.confidence < 1.0:
            raise ValueError(f"rule: confidence must be within [0.5, 1), got {self.confidence!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """Gain and cost of a move.

    Attributes
    ----------
    present_s, step_s
        Time of a step of the plan in force, and of the best other one. [s]
    cost
        Cost of the move; None where a layer would have to go where no links lead.
    lost_s
        Time that staying has lost since the other plan became the better one. [s]
    ratios
        ``step_s / present_s`` on worlds drawn by the spread of the measurements; fewer than two
        say nothing about it.
    """

    present_s: float
    step_s: float
    cost: MoveCost | None
    lost_s: float = math.inf
    ratios: tuple[float, ...] = ()

    @property
    def saved_share(self) -> float:
        """Share of the time that the other plan saves."""
        return 1.0 - self.step_s / self.present_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """Whether to move, and why in a line."""

    moves: bool
    why: str


def weigh_move(rule: PayoffRule, stakes: Stakes) -> Weighed:
    """Weigh a move: over the horizon it must save more than it costs, surely enough.

    A step that takes ``r`` times as long does the work of the horizon ``h`` in ``r h``, so that a
    move of ``c`` pays where ``c + r h < h``. With a spread of r, its upper bound at the rule's
    confidence takes the place of ``r``, as of a normal distribution.

    Examples
    --------
    A tenth of a day is 8,640 s: more than a move of 8,000 s, less than one of 9,000 s.

    >>> cost = MoveCost(num_bytes=0.0, links_s=0.0, restart_s=8000.0)
    >>> weigh_move(PayoffRule(), Stakes(present_s=10.0, step_s=9.0, cost=cost)).moves
    True
    >>> dear = MoveCost(num_bytes=0.0, links_s=0.0, restart_s=9000.0)
    >>> weigh_move(PayoffRule(), Stakes(present_s=10.0, step_s=9.0, cost=dear)).why
    'saves 10.0 %, 2.40 h in 24.0 h, which is less than the 2.50 h of the move'
    """
    if stakes.step_s >= stakes.present_s:
        return Weighed(moves=False, why="no other plan is quicker")
    horizon_s, cost = rule.horizon_s, stakes.cost
    gain = f"saves {100 * stakes.saved_share:.1f} %"
    if cost is None:
        return Weighed(moves=False, why=f"{gain}, but no links lead to where layers would go")
    if not pays(cost.total_s, stakes.step_s, stakes.present_s, horizon_s):
        gain = f"{gain}, {short_time(horizon_s * stakes.saved_share)} in {short_time(horizon_s)}"
        return Weighed(
            moves=False,
            why=f"{gain}, which is less than the {short_time(cost.total_s)} of the move",
        )
    ratio = upper_ratio(rule.confidence, stakes.ratios)
    if ratio is not None and not pays(cost.total_s, ratio, 1.0, horizon_s):
        why = (
            f"{gain}, but {100 * (1.0 - ratio):.1f} % with a confidence of {rule.confidence:g}, "
            f"which does not pay the {short_time(cost.total_s)} of the move"
        )
        return Weighed(moves=False, why=why)
    if stakes.lost_s < rule.patience * cost.total_s:
        why = (
            f"{gain}; waits until staying has lost {short_time(rule.patience * cost.total_s)}, "
            f"so far {short_time(stakes.lost_s)}"
        )
        return Weighed(moves=False, why=why)
    return Weighed(
        moves=True,
        why=f"{gain}, {short_time(horizon_s * stakes.saved_share)} in {short_time(horizon_s)}, "
        f"for {cost_text(cost)}",
    )


def upper_ratio(confidence: float, ratios: Sequence[float]) -> float | None:
    """Upper bound of drawn ratios at a confidence; None where there are fewer than two.

    Examples
    --------
    >>> upper_ratio(0.9, (0.8,)) is None, round(upper_ratio(0.9, (0.8, 0.9, 1.0)), 4)
    (True, 1.0282)
    """
    if len(ratios) < 2:
        return None
    return fmean(ratios) + NormalDist().inv_cdf(confidence) * stdev(ratios)


def cost_text(cost: MoveCost) -> str:
    """Say what a move takes."""
    source = "assumed" if cost.is_assumed else "measured or given"
    parts = [f"restart with checkpoint {short_time(cost.restart_s)}, {source}"]
    if cost.num_bytes:
        parts.append(f"{cost.num_bytes / 1e9:,.0f} GB over links {short_time(cost.links_s)}")
    return f"a move of {short_time(cost.total_s)} ({'; '.join(parts)})"


def short_time(seconds: float) -> str:
    """Write a time with three digits in the unit that suits it.

    Examples
    --------
    >>> short_time(11.4), short_time(600.0), short_time(86400.0), short_time(0.0)
    ('11.4 s', '10.0 min', '24.0 h', '0.00 s')
    """
    for limit_s, length_s, unit in ((120.0, 1.0, "s"), (7200.0, 60.0, "min")):
        if abs(seconds) < limit_s:
            return f"{_three(seconds / length_s)} {unit}"
    return f"{_three(seconds / 3600.0)} h"


def _three(number: float) -> str:
    return f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f}"
