"""The planner behind the policies on networks of more domains than it searches by splits."""

import numpy as np

from agents.decision.situation import TIME_ONLY
from agents.hi_ppo.fallback import MOST_SEARCHED, planned
from agents.hi_ppo.proposing import first_situation
from agents.hi_ppo.validation import require_valid
from agents.planners.search.search import search
from des import PlaneWorlds, build_workload
from des.compiled.simulate import simulate_compiled


def test_pipelines_over_many_domains_are_quicker_than_those_of_a_short_search():
    topology = PlaneWorlds(num_domains=MOST_SEARCHED + 4).draw(np.random.default_rng(0)).at_start()
    job = build_workload("llama2_13b", num_microbatches=16)
    situation = first_situation(topology, job, TIME_ONLY)
    plan = planned(situation, seed=1)

    require_valid(situation, plan)
    searched = search(topology, job, simulator=simulate_compiled, max_judged=20_000).plan
    planned_s, searched_s = (
        simulate_compiled(topology, job, one).makespan_s for one in (plan, searched)
    )
    assert planned_s < searched_s
