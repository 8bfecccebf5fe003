"""Fronts of methods and of the reference, and how near the ones come to the other."""

from collections.abc import Callable, Sequence

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.situation import Preference
from agents.planners.pareto.exact_front import MOST_ENUMERATED, exact_front
from agents.planners.pareto.fronts import Front, figures_of_plans, front_of_figures
from agents.planners.pareto.indicators import (
    FrontMetrics,
    Points,
    front_metrics,
    non_dominated,
    simplex_lattice,
)
from agents.planners.pareto.nsga2 import nsga2
from agents.planners.pareto.plan_objectives import TIME_COST_UTILISATION, PlanFigures
from agents.planners.pareto.proposals import Proposals, Propose
from agents.planners.search.search import MOST_DOMAINS_FOR_ALL_ORDERS
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload
from scenarios.measure.pareto.names import NUM_PREFERENCES
from scenarios.measure.pareto.worlds import PricedWorld

Sweep = Callable[[PricedWorld, Sequence[Preference]], Proposals]
"""All plans that a method proposes for all preferences."""


def preference_grid(num: int = NUM_PREFERENCES) -> tuple[Preference, ...]:
    """Weights of time, utilisation and communication, spread evenly.

    Raises
    ------
    ValueError
        If there is no lattice of that many; 36 and 28 are some.
    """
    return tuple(
        Preference(time=time, utilisation=utilisation, communication=communication)
        for time, utilisation, communication in simplex_lattice(num).tolist()
    )


def swept(propose: Propose) -> Sweep:
    """Return the sweep that asks a policy once for each preference."""

    def sweep(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        plans = [
            plan
            for preference in preferences
            for plan in propose(world.topology, world.workload, preference)
        ]
        return Proposals(plans=tuple(dict.fromkeys(plans)))

    return sweep


def front_of_scheduler(
    propose: Propose,
    topology: Topology,
    workload: Workload,
    *,
    reference: Front | None = None,
    objectives: Sequence[str] = TIME_COST_UTILISATION,
    num_preferences: int = NUM_PREFERENCES,
    corrections: Corrections = NO_CORRECTIONS,
) -> tuple[Front, FrontMetrics]:
    """Front of what a policy proposes in one sweep of the weights, and how near it comes.

    Parameters
    ----------
    reference
        Front to compare with; None makes it, see `reference_front`. What the policy adds to it
        counts as a part of it.

    Raises
    ------
    ValueError
        If there is no lattice of so many preferences, or the policy proposes nothing that fits.
    """
    plans = [
        plan
        for preference in preference_grid(num_preferences)
        for plan in propose(topology, workload, preference)
    ]
    figures = figures_of_plans(topology, workload, plans, corrections)
    found = front_of_figures(figures, objectives, num_judged=len(figures))
    if reference is None:
        reference = reference_front(topology, workload, objectives, corrections=corrections)
    return found, metrics_of(found, merged([reference, found]))


def metrics_of(front: Front, reference: Front) -> FrontMetrics:
    """Compare a front with the reference.

    Raises
    ------
    ValueError
        If they are of other objectives.
    """
    if front.objectives != reference.objectives:
        raise ValueError(
            f"front: objectives must be those of the reference, {reference.objectives}; "
            f"got {front.objectives}"
        )
    return front_metrics(front.points, reference.points)


def merged(fronts: Sequence[Front]) -> Front:
    """What is left of several fronts: the plans that none of any dominates."""
    figures: dict[Plan, PlanFigures] = {}
    for front in fronts:
        figures |= {one.plan: one for one in front.figures}
    return front_of_figures(
        figures.values(),
        fronts[0].objectives,
        num_judged=sum(front.num_judged for front in fronts),
        is_proven=any(front.is_proven for front in fronts),
    )


def reference_front(
    topology: Topology,
    workload: Workload,
    objectives: Sequence[str] = TIME_COST_UTILISATION,
    *,
    schedules: Sequence[str] = DEPTHS,
    corrections: Corrections = NO_CORRECTIONS,
    num_evaluations: int = 20_000,
    seed: int = 0,
) -> Front:
    """Front of `agents.planners.pareto.nsga2` together with that of enumeration, for up to 6
    domains.

    Of more domains NSGA-II's is explored (`Archive.explore`), and nothing is proven. It holds plans
    with a stage a domain under the schedules; others may dominate it.
    """
    is_large = topology.num_domains > MOST_DOMAINS_FOR_ALL_ORDERS
    fronts = [
        nsga2(
            topology,
            workload,
            corrections,
            schedules=schedules,
            objectives=objectives,
            num_evaluations=num_evaluations,
            seed=seed,
            explores=is_large,
        )
    ]
    if not is_large:
        fronts.append(
            exact_front(
                topology,
                workload,
                corrections,
                schedules=schedules,
                objectives=objectives,
                most_enumerated=MOST_ENUMERATED,
            )
        )
    return merged(fronts)


def best_points(points: Points) -> Points:
    """Points that no other dominates, by rising first objective."""
    kept = points[non_dominated(points)]
    return kept[np.lexsort(kept.T[::-1])]
