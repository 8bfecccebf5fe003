"""Plans of all families for an episode: found by search at base figures and on its networks."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from agents.decision.families import SYNCHRONOUS, Family
from agents.decision.frozen_network import distinct_networks, freeze_topologies
from agents.decision.plan_space import PlanSpace
from agents.decision.world import DecisionWorld
from agents.replanning.pool import Pool, spread_places
from agents.search.ideal_plans import ideal_plans
from des import NO_CORRECTIONS, Corrections, InfeasiblePlacementError, Plan, Topology
from des.base.checks import require_count


def whole_pool(
    world: DecisionWorld,
    draw_seed: int,
    *,
    families: Sequence[Family] = SYNCHRONOUS,
    corrections: Corrections = NO_CORRECTIONS,
    max_searched: int | None = None,
    networks: Sequence[Topology] | None = None,
) -> Pool:
    """Collect the best plans of each family for the episode of a draw.

    Those for base figures are known from the first epoch on, those of a network of the draw from
    the first epoch that has it. Microbatches have the size of the world's workload throughout.

    Parameters
    ----------
    max_searched
        Most networks of the draw to search, spread over its epochs. None: all.
    networks
        Those of `agents.decision.frozen_network.freeze_topologies` where they are at hand.

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

    def find_on(topology: Topology) -> tuple[Plan, ...]:
        found = ideal_plans(topology, world.workload, space, corrections, every_family=True)
        return tuple(one.plan for one in found)

    known_from = dict.fromkeys(find_on(world.topology), 0)
    networks = freeze_topologies(world, draw_seed) if networks is None else networks
    distinct, epochs = distinct_networks(networks)
    first_epochs = np.unique(epochs, return_index=True)[1].tolist()
    for place in spread_places(len(distinct), max_searched):
        with suppress(InfeasiblePlacementError):
            for plan in find_on(distinct[place]):
                known_from[plan] = min(first_epochs[place], known_from.get(plan, len(networks)))
    return Pool(plans=tuple(known_from), known_from=tuple(known_from.values()))
