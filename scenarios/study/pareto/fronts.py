"""Worlds with priced links, fronts on them of methods and of the reference, and their distance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

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
from des.base.checks import require_count, require_seed
from des.base.random_numbers import derive_seed
from scenarios.study.pareto.names import NUM_DOMAINS, NUM_PREFERENCES
from scenarios.suites import SuiteWorld, suite

PRICE_SIGMA = 0.6
"""Standard deviation of the logarithm of prices."""

MEDIAN_USD_PER_GB = 0.02
"""Median price of links: about the price of a cloud provider between two of its regions."""

SUITE = "eval_static"
RATIOS = (0.5, 1.0)
"""Transfer/compute ratios of the suite at which several domains pay."""

_PRICES = 2
_MOST_TRIES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedWorld:
    """A job on domains joined by links with prices, all standing still."""

    name: str
    topology: Topology
    workload: Workload
    ratio: float
    schedule: str


def priced(topology: Topology, seed: int) -> Topology:
    """Give every direction of a link a price: log-normal about `MEDIAN_USD_PER_GB`.

    Prices depend on the seed and on the position of the link alone.

    Raises
    ------
    ValueError
        If the seed is out of range.
    """
    require_seed("priced world", "seed", seed)
    factors = np.random.default_rng(seed).lognormal(0.0, PRICE_SIGMA, len(topology.links))
    links = tuple(
        replace(link, price_usd_per_gb=MEDIAN_USD_PER_GB * factor)
        for link, factor in zip(topology.links, factors.tolist(), strict=True)
    )
    return replace(topology, links=links)


def price_worlds(
    num: int, *, num_domains: Sequence[int] = NUM_DOMAINS, seed: int = 0
) -> tuple[PricedWorld, ...]:
    """Return the first worlds of `SUITE` with these numbers of domains and `RATIOS`, with prices.

    Raises
    ------
    ValueError
        If a number is out of range, or the suite has no worlds of one of the numbers of domains.
    """
    require_count("priced worlds", "num", num)
    family = suite(SUITE).with_domains(*num_domains)
    found: list[PricedWorld] = []
    for index in range(_MOST_TRIES):
        world = family.world(index, seed)
        if world.target_ratio in RATIOS:
            found.append(_with_prices(world, seed))
        if len(found) == num:
            return tuple(found)
    raise ValueError(f"priced worlds: num must be at most {len(found)}, got {num}")


def _with_prices(world: SuiteWorld, seed: int) -> PricedWorld:
    world_key = int(world.digest[:15], 16)  # 60 bits, as keys are below 2**63
    return PricedWorld(
        name=world.name,
        topology=priced(world.topology, int(derive_seed(seed, world_key, _PRICES))),
        workload=world.workload,
        ratio=world.ratio,
        schedule=world.schedule,
    )


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
