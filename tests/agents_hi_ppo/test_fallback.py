"""The planner behind the policies on networks of more domains than it searches by splits."""

import numpy as np

from agents.decision.situation import TIME_ONLY
from agents.hi_ppo.fallback import MOST_SEARCHED, planned
from agents.hi_ppo.proposing import first_situation
from agents.hi_ppo.validation import require_valid
from des import Placement, Plan, PlaneWorlds, build_workload
from des.compiled.simulate import simulate_compiled


def test_pipelines_over_many_domains_are_valid_and_quicker_than_even_ones():
    size = MOST_SEARCHED + 4
    topology = PlaneWorlds(num_domains=size).draw(np.random.default_rng(0)).at_start()
    job = build_workload("llama2_13b", num_microbatches=16)
    situation = first_situation(topology, job, TIME_ONLY)
    plan = planned(situation, seed=1)

    require_valid(situation, plan)
    even = (Placement.even(count, job.num_layers) for count in range(1, size + 1))
    even_s = [simulate_compiled(topology, job, Plan(placement=one)).makespan_s for one in even]
    assert simulate_compiled(topology, job, plan).makespan_s < min(even_s)
