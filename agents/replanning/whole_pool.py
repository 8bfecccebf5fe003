"""Plans of all families for an episode: found by search at base figures and on its networks."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from agents.decision.families import SYNCHRONOUS, Family
from agents.decision.held import distinct_networks, held_topologies
from agents.decision.plan_space import PlanSpace
from agents.decision.whole_plan import ProposeGroups
from agents.decision.world import DecisionWorld
from agents.planners.whole.family_search import FamilySearch
from agents.replanning.pool import Pool, spread_places
from des import NO_CORRECTIONS, Corrections, InfeasiblePlacementError, Plan, Topology, Workload
from des.base.checks import require_count


def whole_plans(
    topology: Topology,
    workload: Workload,
    space: PlanSpace,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    max_judged: int | None = None,
    propose: ProposeGroups | None = None,
) -> tuple[Plan, ...]:
    """Search a network in microbatches of the workload's size, and return the best plans.

    One of each family and number of copies of the model, the quickest first.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits.
    """
    search = FamilySearch(
        topology, (workload,), space, corrections, max_judged=max_judged, propose=propose
    )
    found = [judged for own in search.run().by_copies.values() for judged in own]
    return tuple(one.plan for one in sorted(found, key=lambda judged: judged.step_s))


def whole_pool(
    world: DecisionWorld,
    draw_seed: int,
    *,
    families: Sequence[Family] = SYNCHRONOUS,
    corrections: Corrections = NO_CORRECTIONS,
    max_judged: int | None = None,
    max_searched: int | None = None,
    networks: Sequence[Topology] | None = None,
) -> Pool:
    """Collect the best plans of each family and number of copies for the episode of a draw.

    Those for base figures are known from the first epoch on, those of a network of the draw from
    the first epoch that has it. Microbatches have the size of the world's workload throughout.

    Parameters
    ----------
    max_judged
        Of each search, see `agents.planners.whole.search_whole.search_whole`.
    max_searched
        Most networks of the draw to search, spread over its epochs. None: all.
    networks
        Those of `agents.decision.held.held_topologies` where they are at hand.

    Raises
    ------
    ValueError
        If a number is out of range.
    InfeasiblePlacementError
        If no plan fits at base figures; networks on which none does are left out.
    """
    if max_searched is not None:
        require_count("whole pool", "max_searched", max_searched)
    space = PlanSpace(families=tuple(families))

    def found_on(topology: Topology) -> tuple[Plan, ...]:
        return whole_plans(topology, world.workload, space, corrections, max_judged=max_judged)

    known_from = dict.fromkeys(found_on(world.topology), 0)
    networks = held_topologies(world, draw_seed) if networks is None else networks
    distinct, epochs = distinct_networks(networks)
    first_epochs = np.unique(epochs, return_index=True)[1].tolist()
    for place in spread_places(len(distinct), max_searched):
        with suppress(InfeasiblePlacementError):
            for plan in found_on(distinct[place]):
                known_from[plan] = min(first_epochs[place], known_from.get(plan, len(networks)))
    return Pool(plans=tuple(known_from), known_from=tuple(known_from.values()))
