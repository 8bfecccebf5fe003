"""Whether plans rank as another simulator ranks them: the ASTRA-compatible engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from agents.decision.frozen_network import freeze_topology
from agents.replanning.search_schedulers import search_plan
from calibration.cases.case import PlacementCase
from calibration.measuring.measure import measure_case
from des import NO_CORRECTIONS, Plan, Topology, Workload
from des.compiled.simulate import simulate_compiled
from scenarios.study.targets.measurement_size import SchedulerColumn
from scenarios.study.targets.references import in_one_domain
from scenarios.study.targets.target import Goal, Target, Unit, measured
from scenarios.study.targets.time_and_utilisation import even_split_plan
from scenarios.suites import SuiteWorld

BACKEND: Final = "pairwise"

TIE = 0.01
"""Plans that are no further apart than this share in our simulator have no order to keep."""

TAU = Unit(name="tau")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Iteration times of the same plans in both simulators, in the same order. [s]"""

    ours_s: tuple[float, ...]
    theirs_s: tuple[float, ...]

    @property
    def tau(self) -> float:
        """Kendall's tau over pairs of plans that are apart: agreements less others, over all.

        1 where all are ranked alike, also where no pair is apart.
        """
        signs = [
            1.0 if (one < other) == (there < elsewhere) and there != elsewhere else -1.0
            for (one, there), (other, elsewhere) in combinations(
                zip(self.ours_s, self.theirs_s, strict=True), 2
            )
            if abs(one - other) > TIE * min(one, other)
        ]
        return float(np.mean(signs)) if signs else 1.0

    @property
    def has_same_winner(self) -> bool:
        """Whether the quickest plan there is within a tie of the quickest one here."""
        winner = int(np.argmin(self.theirs_s))
        return self.ours_s[winner] <= (1.0 + TIE) * min(self.ours_s)


def plans_of(column: SchedulerColumn, world: SuiteWorld) -> Mapping[str, Plan]:
    """Plans of the scheduler and of its rivals on the first network of a world."""
    topology = freeze_topology(world, column.scope.seed, 0)
    fastest = max(
        range(topology.num_domains), key=lambda at: topology.domains[at].attainable_flops_per_s
    )
    return {
        "own": column.still_plan(world, column.scope.seed),
        "search": search_plan(topology, world.workload),
        "even split": even_split_plan(topology, world.workload),
        "single domain": in_one_domain(fastest, world.workload),
        "replicas": replicas_in_order(topology, world.workload),
    }


def replicas_in_order(topology: Topology, workload: Workload) -> Plan:
    """A replica in every domain, the ring in the order of the topology: as in the other engine.

    Of more domains than microbatches the first ones.
    """
    used = range(min(topology.num_domains, workload.num_microbatches))
    first, *others = (in_one_domain(domain, workload).placement for domain in used)
    return Plan(placement=first, replicas=tuple(others))


def ranking_of(world: SuiteWorld, draw: int, plans: Sequence[Plan]) -> Ranking:
    """Judge plans in both simulators, on links as they are in the first epoch, and held."""
    topology = freeze_topology(world, draw, 0)
    ours = [
        simulate_compiled(topology, world.workload, plan, NO_CORRECTIONS).makespan_s
        for plan in plans
    ]
    theirs = [
        measure_case(
            PlacementCase(topology=topology, workload=world.workload, plan=plan), BACKEND
        ).makespan_s
        for plan in plans
    ]
    return Ranking(ours_s=tuple(ours), theirs_s=tuple(theirs))


def measure(column: SchedulerColumn) -> list[Target]:
    """Rank plans of the scheduler and its rivals through both simulators."""
    scope = column.scope
    worlds = scope.worlds("eval_static", max(1, scope.sizes.num_static // 4))
    found = [
        ranking_of(world, scope.seed, list(dict.fromkeys(plans_of(column, world).values())))
        for world in worlds
    ]
    value, interval = measured([one.tau for one in found])
    winners = sum(one.has_same_winner for one in found)
    errors = [
        abs(there / here - 1.0)
        for one in found
        for here, there in zip(one.ours_s, one.theirs_s, strict=True)
    ]
    return [
        Target(
            name="ranking through ASTRA-sim",
            definition="Kendall's tau between the iteration times of the plans in both simulators, "
            f"over pairs more than {100 * TIE:g} % apart",
            reference=f"the ASTRA-compatible engine, links each with its figures ({BACKEND})",
            goal=Goal(sense="at least", target=1.0),
            value=value,
            interval=interval,
            unit=TAU,
            notes=(
                f"the same winner in {winners} of {len(found)} worlds",
                f"times differ by {100 * float(np.mean(errors)):.3g} % on the mean, "
                f"{100 * max(errors):.3g} % at most"
                if errors
                else "no plans",
            ),
        )
    ]
