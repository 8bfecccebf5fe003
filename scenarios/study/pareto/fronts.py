"""Fronts of methods and of the reference, and the distance between them."""

from collections.abc import Callable, Sequence

from agents.decision.depths import DEPTHS
from agents.decision.situation import Preference
from agents.planners.pareto.exact_front import MOST_ENUMERATED, exact_front
from agents.planners.pareto.fronts import Front, front_of_figures, steady_judge
from agents.planners.pareto.indicators import (
    FrontMetrics,
    front_metrics,
    simplex_lattice,
)
from agents.planners.pareto.nsga2 import nsga2
from agents.planners.pareto.plan_objectives import TIME_COST_UTILISATION, PlanFigures
from agents.planners.pareto.proposals import Proposals, Propose
from agents.planners.search.search import MOST_DOMAINS_FOR_ALL_ORDERS
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload
from scenarios.study.pareto.names import NUM_PREFERENCES
from scenarios.study.pareto.worlds import PricedWorld

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
    """Join several fronts: keep the plans that none of any dominates."""
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
    with one stage per domain under the schedules; others may dominate it.
    """
    is_large = topology.num_domains > MOST_DOMAINS_FOR_ALL_ORDERS
    fronts = [
        nsga2(
            steady_judge(topology, workload, corrections, schedules),
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
