"""Replicas that a metric proposes to the Kubernetes HorizontalPodAutoscaler.

Source: the documented algorithm of the HPA, and the test tables of its replica calculator
(Kubernetes 1.20, Apache-2.0). Arithmetic is in doubles, as there: a ratio of 1.1
acts, 0.9 does not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from des.base.checks import require_positive

POD_STATES = ("ready", "unready", "missing", "ignored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod: its state, what it uses, and what it requests; ``None`` is unknown."""

    state: str
    usage: float | None
    request: float | None = None

    def __post_init__(self) -> None:
        if self.state not in POD_STATES:
            raise ValueError(f"pod: state must be one of {POD_STATES}, got {self.state!r}")


def is_within(ratio: float, tolerance: float) -> bool:
    """Whether a ratio of use to target is near enough to 1; not a number is, nothing is done."""
    return not abs(1.0 - ratio) > tolerance


def by_average_value(total: float, target: float, current: int, tolerance: float) -> int:
    """Replicas at which each has the target share of a total.

    Examples
    --------
    >>> by_average_value(35.0, 10.0, 2, 0.1)
    4
    """
    share = target * current
    ratio = total / share if share else math.nan if not total else math.inf
    return current if is_within(ratio, tolerance) else math.ceil(total / target)


def by_value(value: float, target: float, current: int, ready: int, tolerance: float) -> int:
    """Ready replicas times the ratio of a value to its target; from 0, the ratio itself."""
    ratio = value / target
    if current == 0:
        return math.ceil(ratio)
    return current if is_within(ratio, tolerance) else math.ceil(ratio * ready)


def by_pods(pods: Sequence[Pod], target: float, current: int, tolerance: float) -> int:
    """Replicas by the mean of what pods use against a target."""
    return _Calculation(pods, target, current, tolerance, by_request=False).replicas()


def by_utilisation(
    pods: Sequence[Pod], target_percent: float, current: int, tolerance: float
) -> int:
    """Replicas by the percentage of their requests that pods use."""
    return _Calculation(pods, target_percent, current, tolerance, by_request=True).replicas()


class _Calculation:
    """Proposal from pods, of which some are not ready or have no metric."""

    def __init__(
        self,
        pods: Sequence[Pod],
        target: float,
        current: int,
        tolerance: float,
        *,
        by_request: bool,
    ) -> None:
        require_positive("metric", "target", target)
        self.target, self.current, self.tolerance = target, current, tolerance
        self.by_request = by_request
        self.of_state = {state: [one for one in pods if one.state == state] for state in POD_STATES}

    def replicas(self) -> int:
        ready = [(one.usage or 0.0, one.request or 0.0) for one in self.of_state["ready"]]
        if not ready:
            raise ValueError("metric: pods must have at least 1 that is ready, got 0")
        ratio = self._ratio(ready)
        missing, unready = self.of_state["missing"], self.of_state["unready"]
        if not missing and (not unready or ratio <= 1.0):
            if is_within(ratio, self.tolerance):
                return self.current
            return math.ceil(ratio * len(ready))
        counted = ready + self._assumed(ratio)
        again = self._ratio(counted)
        turned = (ratio < 1.0 < again) or (again < 1.0 < ratio)
        if turned or is_within(again, self.tolerance):
            return self.current
        number = math.ceil(again * len(counted))
        against = (again < 1.0 and number > self.current) or (again > 1.0 and number < self.current)
        return self.current if against else number

    def _assumed(self, ratio: float) -> list[tuple[float, float]]:
        """Use assumed of pods without a metric, so that they never make the change larger."""
        found = []
        for one in self.of_state["missing"]:
            request = one.request or 0.0
            if ratio < 1.0:
                found.append((request if self.by_request else self.target, request))
            elif ratio > 1.0 or not self.by_request:
                found.append((0.0, request))
        if ratio > 1.0:
            found += [(0.0, one.request or 0.0) for one in self.of_state["unready"]]
        return found

    def _ratio(self, counted: Sequence[tuple[float, float]]) -> float:
        used = sum(usage for usage, _ in counted)
        if self.by_request:
            return int(100 * used / sum(request for _, request in counted)) / self.target
        return (used // len(counted)) / self.target
