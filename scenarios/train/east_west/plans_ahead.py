"""Kernels of a training, compiled in a second process in the order in which it needs them.

`scenarios.train.east_west.hi_ppo_run` begins this before its first calibration, which compiles
those that simulate whole plans.
"""

import os
import sys
from dataclasses import replace

from agents.decision.situation import TIME_ONLY
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.bound_proposals import search_proposed, sketching
from agents.hi_ppo.coordinator import QUICK
from agents.hi_ppo.local.shipped import shipped_local
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies, shipped
from agents.hi_ppo.proposing import first_situation
from agents.search.search import PlanRequest
from agents.trainers.table import DEFAULT_TRAINER, trainer_named
from des import read_topology
from des.base.jit import COMPILING_LINES
from des.base.parent_process import be_killed_with
from scenarios.study.targets.local_level import local_decisions_s

_NICENESS = 10
"""Niceness by which processes with results come first."""


def main() -> None:
    """Propose plans for a shipped network, bind them, and decide for one domain."""
    topology = replace(read_topology("east_central_west"), movement=None)
    job = TrainingJob(model="llama2_7b", num_sequences=8)
    proposer = Proposer(Policies.load(shipped()).placement, look_ahead=QUICK)
    proposer.propose(first_situation(topology, job.workload(1), TIME_ONLY))
    request = PlanRequest(topology=topology, job=job, trainer=trainer_named(DEFAULT_TRAINER))
    search_proposed(request, sketching(proposer, look_ahead=QUICK))
    local_decisions_s(shipped_local(), num_decisions=1, num_warm_up=0, budget_s=0.0, seed=0)


if __name__ == "__main__":
    be_killed_with(int(sys.argv[1]))
    os.nice(_NICENESS)
    COMPILING_LINES.continue_another()
    main()
