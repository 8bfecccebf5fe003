"""Zero-bubble schedules found by search: for any pipeline, within the memory it has."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import get_args

from des.base.lazy import lazy_imports
from des.schedules.check import peak_bytes
from des.schedules.list_scheduling import DispatchRule, ListScheduler, Objective, Turn
from des.schedules.operations import Orders
from des.schedules.pipeline import Pipeline
from des.schedules.zero_bubble import zb_h1, zb_h2

with lazy_imports(__name__):
    from des.schedules.kernels import dispatch

_HOLD_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
_GAP_FRACTIONS = (0.0, 0.5, 1.0)
_STEPS = (0.125, 0.0625)


def automatic_zero_bubble(pipeline: Pipeline, objective: Objective = "longest_worker_s") -> Orders:
    """Search for orders with little idle time that fit into the memory of the devices.

    The search tries a grid of rules of a `ListScheduler`, then moves the best rule by ever smaller
    steps. Where every stage has its own device the hand-made ZB-H1 and ZB-H2 are candidates too,
    if they fit; so the outcome is never worse than those. Of equals under the objective the
    shorter makespan wins. Nothing is left to chance.

    With memory for twice the microbatches that 1F1B holds this is the ZB-2p of the zero-bubble
    paper [1]_; the idea of a grid of rules is theirs, the rules are our own.

    Parameters
    ----------
    pipeline
        Stages may share devices in any pattern, as in the V of `wave_devices`.
    objective
        ``longest_worker_s`` is what the published bubble rates measure, ``makespan_s`` the time
        of a single iteration.

    Raises
    ------
    ValueError
        If there is no such objective, or a device has no memory for one microbatch on each of its
        stages.

    Notes
    -----
    With one stage per device, the first one cannot take less than ``(p - 1) (F + D + 2 C) + m (F +
    D) + W`` (equal stages, hop latency ``C``), however much memory there is: the last stage has to
    do all its ``F`` and ``D`` before its last gradient travels up. Where ``(m - 1) W`` is less than
    ``(p - 1) (F + D + 2 C)`` that is a bubble which no search removes.

    References
    ----------
    .. [1] P. Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 3.

    Examples
    --------
    >>> for order in automatic_zero_bubble(Pipeline.uniform(2, 4)):
    ...     print(*(f"{kind}{microbatch}" for kind, microbatch, _ in order))
    F0 F1 F2 D0 F3 D1 W0 D2 W1 D3 W2 W3
    F0 D0 F1 D1 F2 D2 F3 D3 W0 W1 W2 W3
    """
    if objective not in get_args(Objective):
        allowed = " or ".join(get_args(Objective))
        raise ValueError(f"automatic zero bubble: objective must be {allowed}, got {objective!r}")
    search = _Search(pipeline, objective)
    search.try_rules(_grid())
    for step in _STEPS:
        search.descend(step)
    return search.best_orders()


class _Search:
    """All rules tried, with the objective and the makespan of what they lead to."""

    def __init__(self, pipeline: Pipeline, objective: Objective) -> None:
        self._pipeline, self._objective = pipeline, objective
        self._scheduler = ListScheduler(pipeline)
        self._costs_s: dict[DispatchRule, tuple[float, float]] = {}

    def try_rules(self, rules: Iterable[DispatchRule]) -> None:
        """Record the costs of rules in turn; ``inf`` for those that cannot be the best."""
        new = [rule for rule in rules if rule not in self._costs_s]
        if not new:
            return
        limit_s = min(self._costs_s.values(), default=(math.inf,))[0]
        found_s = self._scheduler.run_all(new, limit_s=limit_s, objective=self._objective)
        for rule, times_s in zip(new, found_s, strict=True):
            self._costs_s[rule] = self._cost_s(*times_s)

    def best_orders(self) -> Orders:
        """Make the orders of the best rule, or of a hand-made schedule that is better and fits."""
        pipeline = self._pipeline
        rule = min(self._costs_s, key=self._costs_s.__getitem__)
        self._scheduler.run(rule)
        best_s, best = self._costs_s[rule], self._scheduler.orders()
        for hand_made in (zb_h1, zb_h2) if pipeline.num_stages == pipeline.num_devices else ():
            orders = hand_made(pipeline.num_stages, pipeline.num_microbatches)
            fits = all(
                peak_bytes(order, pipeline)[0] <= pipeline.memory_bytes[device] * dispatch.ROUNDING
                for order, device in zip(orders, pipeline.device_of_stage, strict=True)
            )
            cost_s = self._cost_s(*self._scheduler.follow(orders))
            if fits and cost_s < best_s:
                best_s, best = cost_s, orders
        return best

    def descend(self, step: float) -> None:
        """Move the best rule by a step, again and again as long as that makes it better."""
        before = None
        while (best := min(self._costs_s, key=self._costs_s.__getitem__)) != before:
            self.try_rules(_neighbours(best, step))
            before = best

    def _cost_s(self, longest_s: float, makespan_s: float) -> tuple[float, float]:
        """Objective, then makespan: the least are the best."""
        return (makespan_s if self._objective == "makespan_s" else longest_s), makespan_s


@cache
def _grid() -> tuple[DispatchRule, ...]:
    """Rules with which the search begins."""
    return tuple(
        DispatchRule(turn=turn, hold_fraction=hold, gap_fraction=gap)
        for turn, hold, gap in product(get_args(Turn), _HOLD_FRACTIONS, _GAP_FRACTIONS)
    )


def _neighbours(rule: DispatchRule, step: float) -> Iterator[DispatchRule]:
    """Rules one step away."""
    for moved in (rule.hold_fraction - step, rule.hold_fraction + step):
        if moved >= 0:
            yield replace(rule, hold_fraction=moved)
    for moved in (rule.gap_fraction - step, rule.gap_fraction + step):
        if moved >= 0:
            yield replace(rule, gap_fraction=moved)
