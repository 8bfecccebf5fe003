"""Policies against planners: equal schedules for all, and the policies are a name like others."""

import numpy as np
import pytest
from strategies import unit_workload, world

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from agents.planners.table import PLANNERS
from agents.trainers.ideal import IDEAL
from des import simulate
from scenarios.study.compare import command, dynamic_part
from scenarios.study.compare.head_to_head import EVERY_SCHEDULE, equal_planner

JOB = unit_workload([(1, 2)] * 4, num_microbatches=4, message_bytes=1.0)
SLOW = world("AB", dict.fromkeys(("AB", "BA"), (1.0, 1.0)))


def test_a_planner_gets_the_quickest_of_all_schedules_for_its_placement():
    problem = PlanningProblem(topology=SLOW, workload=JOB, schedules=DEPTHS)
    own = PLANNERS["uniform"].over_depths(problem, np.random.default_rng(0))
    equal = equal_planner("uniform", IDEAL)(problem, np.random.default_rng(0))

    assert equal.placement == own.placement
    assert equal.schedule in EVERY_SCHEDULE
    assert simulate(SLOW, JOB, equal).makespan_s < simulate(SLOW, JOB, own).makespan_s


def test_policies_meet_planners_where_links_stand_still_and_where_they_move():
    asked = command.Config(planners=("hi_ppo", "mast"), suite=("eval_static", "hard"))
    still, moving = command._cases(asked)[0], command._cases(asked)[-1]

    assert still.methods == ("hi_ppo", "mast")
    assert moving.methods == (dynamic_part.STATIC, "hi_ppo", "mast")
    with pytest.raises(ValueError, match="unknown name 'hippo' in planners"):
        command.Config(planners=("hippo",))
