"""Verdict on the plan in force: stay, or move to a better one, with the reason in a line."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from agents.replanning.move_cost import MoveCost
from agents.replanning.payoff import pays
from des.base.checks import require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoffRule:
    """Rule by which a move is taken.

    Attributes
    ----------
    horizon_s
        Time within which a move must pay. [s]
    confidence
        Chance that a move pays below which none is made.
    """

    horizon_s: float = 86_400.0
    confidence: float = 0.4

    def __post_init__(self) -> None:
        require_positive("rule", "horizon_s", self.horizon_s)
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"rule: confidence must be within (0, 1), got {self.confidence!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """Gain and cost of a move.

    Attributes
    ----------
    present_s, step_s
        Time of a step of the plan in force, and of the best other one. [s]
    cost
        Cost of the move; None where a layer would have to go where no links lead.
    fades_per_s
        Mean rate at which advantages of plans fade. [1/s]
    lost_s
        Time that staying has lost since the other plan became the better one. [s]
    ratios
        ``step_s / present_s`` on worlds drawn by the spread of the measurements; fewer than two
        say nothing about it.
    lasts
        Chance that the sites which the other plan needs besides are there for a time [s] more;
        None: they do not go.
    """

    present_s: float
    step_s: float
    cost: MoveCost | None
    fades_per_s: float = 0.0
    lost_s: float = 0.0
    ratios: tuple[float, ...] = ()
    lasts: Callable[[float], float] | None = None

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
    """Weigh a move: within the horizon it must save more than it costs, surely enough.

    A step that takes ``r`` times as long does the work of the horizon ``h`` in ``r h``, so that a
    move of ``c`` pays where ``c + r h < h``, see also `chance_of_paying`.

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
    chance = chance_of_paying(rule, stakes, cost.total_s)
    paid = f"pays after {short_time(cost.total_s / stakes.saved_share)}"
    if chance < rule.confidence:
        why = (
            f"{gain}, but {cost_text(cost)} {paid}, which it does with a chance of {chance:.2f}, "
            f"below {rule.confidence:g}"
        )
        return Weighed(moves=False, why=why)
    return Weighed(
        moves=True, why=f"{gain}; {cost_text(cost)} {paid}, with a chance of {chance:.2f}"
    )


def chance_of_paying(rule: PayoffRule, stakes: Stakes, cost_s: float) -> float:
    """Chance that the other plan stays better until it has saved what the move costs.

    Notes
    -----
    Rates differ from advantage to advantage as a gamma distribution of shape 2 about their mean, as
    congestions end and what a lost site brings back stays. One that has lasted for a time ``a``
    lasts for ``t`` more with the chance ``((b + a) / (b + a + t))^2``, ``b`` being 2 over the mean
    rate. ``t`` is ``c / (1 - r)`` and ``a`` what staying has lost over ``1 - r``; the mean over the
    drawn ratios ``r``, 0 where ``t`` is beyond the horizon. Sites that come and go must besides
    last for ``2 t``: one that goes costs a move back.

    Examples
    --------
    A move of 600 s that saves a quarter pays after 2,400 s; one advantage in 1,200 s fades:

    >>> stakes = Stakes(present_s=4.0, step_s=3.0, cost=None, fades_per_s=1.0 / 1200.0)
    >>> round(chance_of_paying(PayoffRule(), stakes, 600.0), 4)  # (2400 / 4800)^2
    0.25
    """
    ratios = stakes.ratios or (stakes.step_s / stakes.present_s,)
    known_s = 2.0 / stakes.fades_per_s if stakes.fades_per_s else math.inf
    chances = []
    for saved in (1.0 - ratio for ratio in ratios):
        if cost_s >= rule.horizon_s * saved:
            chances.append(0.0)
            continue
        chance = 1.0 if stakes.lasts is None else stakes.lasts(2.0 * cost_s / saved)
        if not math.isinf(known_s):
            lasted_s = known_s + stakes.lost_s / saved
            chance *= (lasted_s / (lasted_s + cost_s / saved)) ** 2
        chances.append(chance)
    return fmean(chances)


def saved_s(rule: PayoffRule, stakes: Stakes) -> float:
    """Time that a move saves over the horizon, its advantage fading at a positive rate. [s]

    Examples
    --------
    A tenth of 2 hours would be 720 s; it halves every hour, so 3/4 of 3,600 s / ln 2 are left:

    >>> cost = MoveCost(num_bytes=0.0, links_s=0.0, restart_s=60.0)
    >>> fades_per_s = math.log(2.0) / 3600.0
    >>> stakes = Stakes(present_s=10.0, step_s=9.0, cost=cost, fades_per_s=fades_per_s)
    >>> round(saved_s(PayoffRule(horizon_s=7200.0), stakes), 2)  # 389.53 - 60
    329.53
    """
    cost_s = math.inf if stakes.cost is None else stakes.cost.total_s
    rate = stakes.fades_per_s
    return stakes.saved_share * -math.expm1(-rate * rule.horizon_s) / rate - cost_s


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
