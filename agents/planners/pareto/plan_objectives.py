"""Objectives of plans besides time: link charges, utilisation, activations."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from agents.decision.simulator import Simulator
from agents.judge.search_judge import Judge
from agents.judge.steady_judge import MISFIT
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload, simulate
from des.base.arithmetic import held_bytes
from des.compiled.many.activations import ACTIVATION, WEIGHT_INPUT
from des.compiled.many.layout import Real
from des.compiled.many.steady import Plans
from des.views.prices import BYTES_PER_GB, MissingPriceError

OBJECTIVES = (
    "time_s_per_token",
    "cost_per_token",
    "utilisation",
    "used_utilisation",
    "activation_bytes",
)
"""Figures of a plan. Less of the first two and of the last is better, more of the others.

Cost is in USD where links have prices, else in bytes. ``utilisation`` is useful FLOPs over the peak
of all domains' GPUs, ``used_utilisation`` over that of the domains that have a stage. Activations
are the most that any domain holds, all its GPUs together.
"""

MAXIMISED = frozenset({"utilisation", "used_utilisation"})

TIME_COST_UTILISATION = OBJECTIVES[:3]
TIME_COST_USED_UTILISATION = (*OBJECTIVES[:2], "used_utilisation")
WITH_ACTIVATIONS = (*TIME_COST_UTILISATION, "activation_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigures:
    """The `OBJECTIVES` of a plan, and whether it fits into memory."""

    plan: Plan
    time_s_per_token: float
    cost_per_token: float
    utilisation: float
    used_utilisation: float
    activation_bytes: float
    fits_memory: bool

    def point(self, objectives: Sequence[str]) -> tuple[float, ...]:
        """Return some of the figures, those negated of which more is better."""
        return tuple(
            -getattr(self, name) if name in MAXIMISED else getattr(self, name)
            for name in objectives
        )


def link_prices(topology: Topology) -> tuple[float, ...]:
    """Price of every link: USD per byte; 1 for all where none has a price, so that bytes count.

    Raises
    ------
    MissingPriceError
        If some links have prices and others have none.
    """
    prices = [link.price_usd_per_gb for link in topology.links]
    known = [price / BYTES_PER_GB for price in prices if price is not None]
    if known and len(known) < len(prices):
        missing = topology.links[prices.index(None)]
        raise MissingPriceError(f"{missing}: price_usd_per_gb must be given, as others are")
    return tuple(known) if known else (1.0,) * len(prices)


def figures_of_plans(
    topology: Topology,
    workload: Workload,
    plans: Iterable[Plan],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    simulator: Simulator = simulate,
) -> list[PlanFigures]:
    """Simulate an iteration of any plans, each once, and return what they are judged by.

    Plans without figures are an error.
    """
    num_tokens = workload.tokens_per_iteration
    found = []
    for plan in dict.fromkeys(plans):
        result = simulator(topology, workload, plan, corrections)
        charges = [
            link.num_bytes * price
            for link, price in zip(result.links, link_prices(topology), strict=True)
        ]
        used = {stage.domain for stage in result.stages}
        peaks = (one.peak_flops_per_s for one in topology.domains if one.name in used)
        used_flops = math.fsum(peaks) * result.makespan_s
        found.append(
            PlanFigures(
                plan=plan,
                time_s_per_token=result.makespan_s / num_tokens,
                cost_per_token=math.fsum(charges) / num_tokens,
                utilisation=result.utilisation,
                used_utilisation=workload.flops_per_iteration / used_flops,
                activation_bytes=max(memory.activation_bytes for memory in result.memory),
                fits_memory=result.fits_memory,
            )
        )
    return found


class ObjectiveJudge:
    """`Judge` of several objectives, for plans with one stage per domain."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        topology, workload = judge.topology, judge.workload
        self._num_tokens = workload.tokens_per_iteration
        self._flops = workload.flops_per_iteration
        self.peak_flops_per_s = np.array([one.peak_flops_per_s for one in topology.domains])
        self.price = _border_prices(judge)
        self._message_bytes = workload.num_microbatches * workload.message_bytes

    def points(self, plans: Plans, objectives: Sequence[str]) -> tuple[Real, Real]:
        """Return objectives, shaped (N, objectives), and the iteration times. [s]

        Of plans that do not fit, or that nothing joins, all objectives are ``inf``; the time is
        the score of `Judge.scores`.
        """
        makespan_s = self.judge.scores(plans)
        known = makespan_s < MISFIT
        points = np.column_stack([self._column(name, plans, makespan_s) for name in objectives])
        points[~known] = np.inf
        return points, makespan_s

    def _column(self, name: str, plans: Plans, makespan_s: Real) -> Real:
        """Return one of the objectives, negated where more is better."""
        if name == "time_s_per_token":
            return makespan_s / self._num_tokens
        if name == "cost_per_token":
            return self.costs(plans) / self._num_tokens
        if name == "utilisation":
            return -self._flops / (float(self.peak_flops_per_s.sum()) * makespan_s)
        if name == "used_utilisation":
            return -self._flops / (self.used_flops_per_s(plans) * makespan_s)
        if name == "activation_bytes":
            return self.activation_bytes(plans)
        raise ValueError(f"objectives: must be some of {', '.join(OBJECTIVES)}; got {name!r}")

    def costs(self, plans: Plans) -> Real:
        """Charges for all messages of an iteration, shaped (N,). [USD or bytes]"""
        here, there = plans.domain[:, :-1], plans.domain[:, 1:]
        is_border = np.arange(1, plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
        price = np.where(is_border, self.price[here, there] + self.price[there, here], 0.0)
        total: Real = self._message_bytes * price.sum(axis=1)
        return total

    def used_flops_per_s(self, plans: Plans) -> Real:
        """Peak of the GPUs of the domains in use, shaped (N,)."""
        is_stage = np.arange(plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
        total: Real = np.where(is_stage, self.peak_flops_per_s[plans.domain], 0.0).sum(axis=1)
        return total

    def activation_bytes(self, plans: Plans) -> Real:
        """Most activations that any stage of a plan holds at once, shaped (N,)."""
        programs, sums = self.judge.programs, self.judge.job.sums_before
        moments, most = programs.moments, np.zeros(len(plans.num_stages))
        groups = plans.schedule * programs.most_stages + plans.num_stages - 1
        for group in np.unique(groups).tolist():
            rows = np.flatnonzero(groups == group)
            begin = np.zeros(len(rows), dtype=np.int64)
            for stage in range(group % programs.most_stages + 1):
                end = plans.end_layer[rows, stage]
                first = moments.first[group] + stage
                held = slice(moments.start[first], moments.start[first + 1])
                whole = sums[end, ACTIVATION] - sums[begin, ACTIVATION]
                halved = sums[end, WEIGHT_INPUT] - sums[begin, WEIGHT_INPUT]
                peak = held_bytes(
                    moments.num_whole[held],
                    moments.num_halved[held],
                    whole[:, np.newaxis],
                    halved[:, np.newaxis],
                )
                most[rows] = np.maximum(most[rows], peak.max(axis=1, initial=0.0))
                begin = end
        return most

    def are_joined(self, plans: Plans) -> np.ndarray:
        """Mask of plans whose borders all have a path, there and back, shaped (N,)."""
        here, there = plans.domain[:, :-1], plans.domain[:, 1:]
        is_border = np.arange(1, plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
        joined: np.ndarray = np.all(self.judge.can_reach[here, there] | ~is_border, axis=1)
        return joined

    def order_cost(self, order: Sequence[int]) -> float:
        """Charges for all messages of an iteration over domains in this order. [USD or bytes]"""
        price = math.fsum(self.price[ends] + self.price[ends[::-1]] for ends in pairwise(order))
        return self._message_bytes * price


def _border_prices(judge: Judge) -> Real:
    """Price of a byte from the domain of a row to that of a column, over its route; (K, K)."""
    prices, table = link_prices(judge.topology), np.full(judge.can_reach.shape, np.inf)
    for ends in zip(*np.nonzero(judge.can_reach), strict=True):
        source, target = map(int, ends)
        if source != target:
            table[ends] = math.fsum(prices[hop] for hop in judge.topology.route(source, target))
    return table
