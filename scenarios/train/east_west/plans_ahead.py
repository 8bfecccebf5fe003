"""Kernels of the search of bound plans, compiled while a run waits for its first calibration.

`scenarios.train.east_west.hi_ppo_run` runs this as a second process. It simulates no whole plan:
those kernels are compiled by the calibration at the same time.
"""

import sys
from dataclasses import replace

from agents.decision.training_job import TrainingJob
from agents.search.desk import SearchDesk
from agents.search.search import PlanRequest, candidates_of
from agents.trainers.table import DEFAULT_TRAINER, trainer_named
from des import read_topology
from des.base.jit import COMPILING_LINES
from des.base.parent_process import be_killed_with


def main() -> None:
    """Look for candidates on a shipped network."""
    request = PlanRequest(
        topology=replace(read_topology("east_central_west"), movement=None),
        job=TrainingJob(model="llama2_7b", num_sequences=8),
        trainer=trainer_named(DEFAULT_TRAINER),
    )
    desk = SearchDesk(topology=request.topology, job=request.job, corrections=request.corrections)
    for candidates in candidates_of(request, desk).groups:
        for best in candidates[:1]:
            desk.polished(best)


if __name__ == "__main__":
    be_killed_with(int(sys.argv[1]))
    COMPILING_LINES.continue_another()
    main()
