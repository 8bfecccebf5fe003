"""Kubernetes' HorizontalPodAutoscaler as a pure step: stabilisation, rate limits, bounds.

Source: the documented behaviour of the HPA and its test tables (Kubernetes, Apache-2.0). Behaviours
look back strictly less than their window; without behaviours the border itself counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from des.base.checks import require_non_negative, require_positive

TICK_S = 15.0
TOLERANCE = 0.1
OLD_WINDOW_S = 300.0
"""Window of stabilisation without behaviours."""
DISABLED, ABOVE_MAX, BELOW_MIN = "Disabled", "AboveMax", "BelowMin"
INVALID, WITHIN = "InvalidMetrics", "DesiredWithinRange"
UP_LIMIT, DOWN_LIMIT = "ScaleUpLimit", "ScaleDownLimit"
TOO_MANY, TOO_FEW = "TooManyReplicas", "TooFewReplicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePolicy:
    """At most ``value`` pods, or percent of them, in a period."""

    kind: str
    value: float
    period_s: float

    def __post_init__(self) -> None:
        if self.kind not in ("Pods", "Percent"):
            raise ValueError(f"rate policy: kind must be Pods or Percent, got {self.kind!r}")
        require_positive("rate policy", "value", self.value)
        require_positive("rate policy", "period_s", self.period_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """Behaviour in one direction: window of stabilisation, and policies, of which one counts."""

    window_s: float = 0.0
    select: str = "Max"
    policies: tuple[RatePolicy, ...]

    def __post_init__(self) -> None:
        require_non_negative("behaviour", "window_s", self.window_s)
        if self.select not in ("Max", "Min", "Disabled"):
            raise ValueError(f"behaviour: select must be Max, Min or Disabled, got {self.select!r}")


DEFAULT_UP = Direction(
    policies=(
        RatePolicy(kind="Pods", value=4, period_s=15.0),
        RatePolicy(kind="Percent", value=100, period_s=15.0),
    )
)
DEFAULT_DOWN = Direction(
    window_s=300.0, policies=(RatePolicy(kind="Percent", value=100, period_s=15.0),)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaRules:
    """Bounds and behaviours; ``up`` and ``down`` are both None where no behaviour is configured."""

    min_replicas: int
    max_replicas: int
    tolerance: float = TOLERANCE
    up: Direction | None = DEFAULT_UP
    down: Direction | None = DEFAULT_DOWN

    def __post_init__(self) -> None:
        if not 0 <= self.min_replicas <= self.max_replicas:
            raise ValueError(
                f"HPA: min_replicas must be from 0 to max_replicas ({self.max_replicas}), "
                f"got {self.min_replicas}"
            )
        require_non_negative("HPA", "tolerance", self.tolerance)
        if (self.up is None) != (self.down is None):
            raise ValueError("HPA: up and down must both be given or both be none")


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaMemory:
    """Recommendations and signed changes so far, each with its time."""

    recommendations: tuple[tuple[float, int], ...] = ()
    changes: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaDecision:
    """Replicas wanted, the recommendation before limits (None: there is none), and the reason."""

    replicas: int
    recommendation: int | None
    reason: str


def hpa_step(
    rules: HpaRules,
    memory: HpaMemory | None,
    now_s: float,
    current: int,
    proposals: Sequence[int | None],
) -> tuple[HpaDecision, HpaMemory]:
    """Decide once.

    Parameters
    ----------
    memory
        Memory after the last decision; None at the first.
    current
        Replicas now, those that are starting included.
    proposals
        Replicas that each metric proposes; None where its value is missing.
    """
    if memory is None:
        memory = HpaMemory(recommendations=((now_s, current),))
    forced = _forced(rules, current)
    if forced is not None:
        replicas, reason = forced
        decision = HpaDecision(replicas=replicas, recommendation=None, reason=reason)
        return decision, _changed(memory, now_s, replicas - current)
    known = [each for each in proposals if each is not None]
    if not known or (len(known) < len(proposals) and max(known) < current):
        return HpaDecision(replicas=current, recommendation=None, reason=INVALID), memory
    wanted = max(known)
    if rules.up is None or rules.down is None:
        steady = stabilised_old(wanted, now_s, memory.recommendations, OLD_WINDOW_S)
        replicas, reason = limited_old(rules, current, steady)
    else:
        windows = (rules.up.window_s, rules.down.window_s)
        steady = stabilised(current, wanted, now_s, memory.recommendations, windows)
        replicas, reason = limited(rules, memory.changes, now_s, current, steady)
    after = replace(memory, recommendations=(*memory.recommendations, (now_s, wanted)))
    decision = HpaDecision(replicas=replicas, recommendation=wanted, reason=reason)
    return decision, _forgetting(_changed(after, now_s, replicas - current), rules, now_s)


def _forced(rules: HpaRules, current: int) -> tuple[int, str] | None:
    if current == 0 and rules.min_replicas > 0:
        return 0, DISABLED
    if current > rules.max_replicas:
        return rules.max_replicas, ABOVE_MAX
    if current < rules.min_replicas:
        return rules.min_replicas, BELOW_MIN
    return None


def stabilised_old(
    wanted: int, now_s: float, recommendations: Sequence[tuple[float, int]], window_s: float
) -> int:
    """Greatest recommendation of a window, its border included."""
    return max([wanted, *(num for time_s, num in recommendations if time_s >= now_s - window_s)])


def stabilised(
    current: int,
    wanted: int,
    now_s: float,
    recommendations: Sequence[tuple[float, int]],
    windows_s: tuple[float, float],
) -> int:
    """Recommendation within the least of the window up and the greatest of the window down."""
    up_s, down_s = windows_s
    low = min([wanted, *(num for time_s, num in recommendations if time_s > now_s - up_s)])
    high = max([wanted, *(num for time_s, num in recommendations if time_s > now_s - down_s)])
    return min(max(current, low), high)


def limited_old(rules: HpaRules, current: int, wanted: int) -> tuple[int, str]:
    """Replicas within the bounds and at most twice the current ones, or 4, with the reason."""
    cap = max(2 * current, 4)
    if wanted < rules.min_replicas:
        return rules.min_replicas, TOO_FEW
    if wanted > min(rules.max_replicas, cap):
        if rules.max_replicas > cap:
            return cap, UP_LIMIT
        return rules.max_replicas, TOO_MANY
    return wanted, WITHIN


def limited(
    rules: HpaRules,
    changes: Sequence[tuple[float, int]],
    now_s: float,
    current: int,
    wanted: int,
) -> tuple[int, str]:
    """Replicas within the bounds and the rates of the behaviours, with the reason."""
    assert rules.up is not None
    assert rules.down is not None
    if wanted > current:
        limit = max(current, _rate_limit(rules.up, changes, now_s, current, sign=1))
        if wanted > min(rules.max_replicas, limit):
            if rules.max_replicas > limit:
                return limit, UP_LIMIT
            return rules.max_replicas, TOO_MANY
    elif wanted < current:
        limit = min(current, _rate_limit(rules.down, changes, now_s, current, sign=-1))
        if wanted < max(rules.min_replicas, limit):
            if rules.min_replicas < limit:
                return limit, DOWN_LIMIT
            return rules.min_replicas, TOO_FEW
    return wanted, WITHIN


def _rate_limit(
    direction: Direction,
    changes: Sequence[tuple[float, int]],
    now_s: float,
    current: int,
    *,
    sign: int,
) -> int:
    if direction.select == "Disabled" or not direction.policies:
        return current
    found = []
    for policy in direction.policies:
        base = current - sum(size for time_s, size in changes if time_s > now_s - policy.period_s)
        if policy.kind == "Pods":
            found.append(base + sign * int(policy.value))
        elif sign > 0:
            found.append(math.ceil(base * (1.0 + policy.value / 100.0)))
        else:
            found.append(math.trunc(base * (1.0 - policy.value / 100.0)))
    widest = max if sign > 0 else min
    narrowest = min if sign > 0 else max
    return widest(found) if direction.select == "Max" else narrowest(found)


def _changed(memory: HpaMemory, now_s: float, size: int) -> HpaMemory:
    return replace(memory, changes=(*memory.changes, (now_s, size))) if size else memory


def _forgetting(memory: HpaMemory, rules: HpaRules, now_s: float) -> HpaMemory:
    """Memory without what no window or period can reach any more."""
    directions = [each for each in (rules.up, rules.down) if each is not None]
    window_s = max([OLD_WINDOW_S, *(each.window_s for each in directions)])
    periods = [policy.period_s for each in directions for policy in each.policies]
    period_s = max([0.0, *periods])
    return HpaMemory(
        recommendations=tuple(
            each for each in memory.recommendations if each[0] >= now_s - window_s
        ),
        changes=tuple(each for each in memory.changes if each[0] >= now_s - period_s),
    )
