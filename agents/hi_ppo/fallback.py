"""Search fallback outside the range of training, and where the policies find no plan."""

from agents.decision.depths import DEPTHS
from agents.decision.plan_space import PlanSpace
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Situation
from agents.judge.steady_judge import has_steady_plans
from agents.planners.search.search import search
from agents.search.ideal_plans import ideal_plans
from des import Plan
from des.compiled.simulate import simulate_compiled

FALLBACK_BUDGET = 200_000
"""Most plans that the planner judges: a few tenths of a second."""

RELAYED_BUDGET = 200
"""The same where plans are simulated one by one, which takes milliseconds each."""

MOST_SEARCHED = 16
"""Most domains for the search by splits. Above, it takes seconds, while
`agents.search.ideal_plans.ideal_plans` finds quicker pipelines in less than one."""

_PIPELINES = PlanSpace(families=("single", "pipeline"), schedules=DEPTHS)


def planned(situation: Situation, seed: int) -> Plan:
    """Plan by `agents.planners.search.search.search` on the network as it is.

    Above `MOST_SEARCHED` domains by `agents.search`, for pipelines alone.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits, naming what the one lacks that lacks least: domain, needs and has.
    """
    topology, workload = leave_reserved_memory(situation), situation.workload
    if topology.num_domains > MOST_SEARCHED:
        return ideal_plans(topology, workload, _PIPELINES, situation.corrections)[0].plan
    num_pairs = topology.num_domains * (topology.num_domains - 1)
    is_quick = len(topology.links) == num_pairs and has_steady_plans(topology, simulate_compiled)
    return search(
        topology,
        workload,
        situation.corrections,
        simulator=simulate_compiled,
        seed=seed,
        max_judged=FALLBACK_BUDGET if is_quick else RELAYED_BUDGET,
    ).plan
