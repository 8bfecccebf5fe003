"""DiLoCo: a replica in every domain that trains by itself and exchanges what it has learnt rarely.

It is **not the same training** as that of every other planner. Each replica takes ``H`` steps of an
inner optimiser on its own share of the data, and an outer optimiser then applies the mean change of
all replicas: the model that comes out, and how many steps it needs, differ. Iteration times of
these plans compare with others per batch of samples only, not per progress of the training. The
state of the outer optimiser is on the GPUs, and counted.

References
----------
.. [1] A. Douillard et al., "DiLoCo: Distributed low-communication training of language models",
   arXiv 2311.08105, 2023.
.. [2] A. Douillard et al., "Streaming DiLoCo with overlapping communication", arXiv 2501.18512,
   2025.
"""

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.rules.data_parallel import whole_model_replicas
from des import DiLoCo, Plan, StreamingDiLoCo
from des.plan.synchronisation import Synchronisation

INNER_STEPS = 100
"""Steps between two exchanges of a value, as published in [2]_."""


def diloco(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Exchange all changes of parameters after every `INNER_STEPS` steps, which wait for it."""
    return _plan(problem, DiLoCo(steps_between=INNER_STEPS))


def streaming_diloco(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Exchange a few layers at a time, each after every `INNER_STEPS` steps, behind a further step.

    Parameters that come back a step late are one more change to the training.
    """
    return _plan(problem, StreamingDiLoCo(steps_between=INNER_STEPS))


def _plan(problem: PlanningProblem, synchronisation: Synchronisation) -> Plan:
    first, *others = whole_model_replicas(problem)
    return Plan(
        placement=first,
        schedule=problem.schedule,
        replicas=tuple(others),
        synchronisation=synchronisation,
    )
