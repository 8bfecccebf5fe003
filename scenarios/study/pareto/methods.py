"""Methods whose fronts are compared, by name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.situation import Preference
from agents.judge.steady_judge import MISFIT
from agents.planners.pareto.fronts import Archive, join_orders, steady_judge, water_filled
from agents.planners.pareto.nsga2 import nsga2
from agents.planners.pareto.plan_objectives import TIME_COST_UTILISATION, ObjectiveJudge
from agents.planners.pareto.proposals import Proposals, Propose
from agents.planners.rules.crosspipe import crosspipe
from agents.planners.search.search import MOST_DOMAINS_FOR_ALL_ORDERS
from agents.planners.search.search_moves import Order, joined, neighbours, plans_of_orders
from agents.planners.search.search_refine import refined
from agents.planners.table import reference_planners
from des import NO_CORRECTIONS, Plan
from des.compiled.many.layout import Real
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans
from scenarios.study.pareto.fronts import PricedWorld, Sweep, swept
from scenarios.study.trained_plans import depth_problem

NUM_REFINED = 8
"""Orders whose stages are refined and that are proposed, for each preference."""

MOST_COMPLETED = 50_000
"""Plans that complete a sweep, about."""

_NUM_TOGETHER, _MOST_ROUNDS = 64, 2
_NUM_WEIGHTS = 3
_AUGMENTATION = 0.05
"""Share of the sum in a Chebyshev distance, so that of equally far plans the better one wins."""


class SearchSweep:
    """Search of the orders of least weighted Chebyshev distance for each preference, refined.

    Time, cost and utilisation are measured from the best of each that is known to what the plans
    that are best in another have, and weighted by the preference; the largest counts. Up to 6
    domains all orders are looked at, with their layers split evenly in time; of more, those that a
    descent over neighbouring orders finds for each preference, from the best known. The best
    `NUM_REFINED` orders are refined as `agents.planners.search.search` does and proposed under
    all depths.
    Where activations are an objective too, so is what is up to two moves of layers away and on the
    front: no preference says how much they count.
    """

    def __init__(self, objectives: Sequence[str] = TIME_COST_UTILISATION) -> None:
        self._objectives = tuple(objectives)

    def __call__(self, world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        """Propose plans for all preferences."""
        judge = steady_judge(world.topology, world.workload, NO_CORRECTIONS, DEPTHS)
        table = _Table(judge, self._objectives[:_NUM_WEIGHTS])
        if world.topology.num_domains <= MOST_DOMAINS_FOR_ALL_ORDERS:
            table.look_at(join_orders(judge.judge))
        else:
            table.look_at((domain,) for domain in range(world.topology.num_domains))
            for weights in _weights(preferences):
                table.descend(weights)
        picked: dict[Order, None] = {}
        for weights in _weights(preferences):
            picked |= dict.fromkeys(table.best(weights, NUM_REFINED))
        plans = _refine(judge, table, list(picked))
        if len(self._objectives) == _NUM_WEIGHTS:
            every = [judge.judge.plan(plans, row) for row in range(len(plans.num_stages))]
            return Proposals(plans=tuple(every))
        archive = Archive(judge, self._objectives)
        archive.add(plans)
        archive.descend(_MOST_ROUNDS)
        return Proposals(plans=tuple(one.plan for one in archive.front().figures))


class _Table:
    """Orders that have been looked at: objectives with even stages, under the best depth."""

    def __init__(self, judge: ObjectiveJudge, objectives: Sequence[str]) -> None:
        self._judge, self._objectives = judge, objectives
        self._row: dict[Order, int] = {}
        self._points: Real = np.empty((0, len(objectives)))
        self._scores: Real = np.empty(0)
        self._schedules: list[int] = []

    def schedule_of(self, order: Order) -> int:
        """Position of the schedule under which an order is quickest."""
        return self._schedules[self._row[order]]

    def look_at(self, orders: Iterable[Order]) -> None:
        """Judge orders that are new and whose neighbours reach each other."""
        search = self._judge.judge
        new = [
            order
            for order in dict.fromkeys(orders)
            if order not in self._row and all(search.can_reach[pair] for pair in pairwise(order))
        ]
        if not new:
            return
        plans, _ = water_filled(search, new)
        points, scores = self._judge.points(plans, self._objectives)
        points = points.reshape(len(new), len(search.schedules), -1)
        scores = scores.reshape(len(new), -1)
        quickest = scores.argmin(axis=1)
        for order, schedule in zip(new, quickest.tolist(), strict=True):
            self._row[order] = len(self._schedules)
            self._schedules.append(schedule)
        best = np.arange(len(new)), quickest
        self._points = np.concatenate([self._points, points[best]])
        self._scores = np.concatenate([self._scores, scores[best]])

    def descend(self, weights: Real) -> None:
        """Climb from the best order to the best neighbour until none is better."""
        search = self._judge.judge
        best: Order | None = None
        while (order := self.best(weights, 1)[0]) != best:
            best = order
            self.look_at(neighbours(order, search.topology.num_domains, search.most_stages))

    def best(self, weights: Real, most: int) -> list[Order]:
        """Orders of least distance, the best first; those behind fit least into memory."""
        orders = list(self._row)
        ranked = np.argsort(self._distances(weights), kind="stable")[:most]
        return [orders[row] for row in ranked.tolist()]

    def _distances(self, weights: Real) -> Real:
        """Weighted distances of all orders; of those that do not fit, their scores."""
        distances, fits = self._scores.copy(), self._scores < MISFIT
        if fits.any():
            fitting = self._points[fits]
            ideal = fitting.min(axis=0)
            width = fitting[fitting.argmin(axis=0)].max(axis=0) - ideal
            weighted = weights * (fitting - ideal) / np.where(width > 0.0, width, 1.0)
            distances[fits] = weighted.max(axis=1) + _AUGMENTATION * weighted.sum(axis=1)
        return distances


def _weights(preferences: Sequence[Preference]) -> list[Real]:
    """Weights in the order of the objectives: time, cost, utilisation."""
    return [np.array([one.time, one.communication, one.utilisation]) for one in preferences]


def _refine(judge: ObjectiveJudge, table: _Table, orders: list[Order]) -> Plans:
    """Refine the split of each order; plans under all schedules."""
    search, found = judge.judge, []
    for begin in range(0, len(orders), _NUM_TOGETHER):
        some = orders[begin : begin + _NUM_TOGETHER]
        plans = plans_of_orders(some, range(1), search.most_stages)
        plans.schedule[:] = [table.schedule_of(order) for order in some]
        search.fill(plans)
        refined(search, plans, search.scores(plans))
        found.append(plans)
    num_schedules = len(search.schedules)
    every = plan_rows(joined(found), np.repeat(np.arange(len(orders)), num_schedules))
    every.schedule[:] = np.tile(np.arange(num_schedules), len(orders))
    return every


NUM_EVALUATIONS = 5_000
"""Evaluations of NSGA-II as a method: a quarter of the reference's."""


def methods_of(
    objectives: Sequence[str], *, seed: int, policies: Mapping[str, Propose] | None = None
) -> dict[str, Sweep]:
    """Return all methods that are to be compared in some objectives.

    Parameters
    ----------
    policies
        Policies that know preferences; each decides once for each of the weights. Where
        activations count, which no preference weighs, each of its plans is offered under all
        depths.
    seed
        Of what draws.
    """
    sweeps: dict[str, Sweep] = {name: swept(one) for name, one in (policies or {}).items()}
    if tuple(objectives) != TIME_COST_UTILISATION:
        sweeps = {name: completed(sweep, objectives) for name, sweep in sweeps.items()}

    def nsga2_once(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        """Make one front, whatever the preferences."""
        front = nsga2(
            steady_judge(world.topology, world.workload, NO_CORRECTIONS, DEPTHS),
            objectives=objectives,
            num_evaluations=NUM_EVALUATIONS,
            seed=seed + 1,  # not the beginning of the reference's search
        )
        return Proposals(plans=tuple(one.plan for one in front.figures))

    def planners(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        """Ask each planner once: none knows preferences."""
        return planner_proposals(world, seed)

    return sweeps | {
        "search_sweep": SearchSweep(objectives),
        f"nsga2_{NUM_EVALUATIONS}": nsga2_once,
        "planners": planners,
    }


def completed(sweep: Sweep, objectives: Sequence[str]) -> Sweep:
    """Return the sweep and the front of what a search finds from its plans on.

    It moves layers, domains and depths, see `Archive.explore`: what no preference weighs, as the
    GPUs in use and activations, decides there.
    """

    def found(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        proposals = sweep(world, preferences)
        judge = steady_judge(world.topology, world.workload, NO_CORRECTIONS, DEPTHS)
        archive = Archive(judge, objectives)
        archive.add(judge.judge.plans_of(proposals.plans))
        archive.explore(MOST_COMPLETED)
        front = [one.plan for one in archive.front().figures]
        return replace(proposals, plans=tuple(dict.fromkeys([*proposals.plans, *front])))

    return found


def planner_proposals(world: PricedWorld, seed: int) -> Proposals:
    """One plan of each planner; those that have none for the world are named in the notes."""
    problem = depth_problem(world.topology, world.workload, world.schedule)
    plans: list[Plan] = []
    notes: list[str] = []
    for name, planner in (reference_planners() | {"crosspipe": crosspipe}).items():
        try:
            plans.append(planner(problem, np.random.default_rng(seed)))
        except ValueError as error:  # too many placements to enumerate, or none that fits
            notes.append(f"{name} has no plan: {error}")
    return Proposals(plans=tuple(dict.fromkeys(plans)), notes=tuple(notes))
