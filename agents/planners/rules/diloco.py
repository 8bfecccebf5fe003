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

from collections import deque

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.rules.data_parallel import whole_model_replicas
from des import DiLoCo, Plan, StreamingDiLoCo, simulate_epoch
from des.engine.gradients import exchange_behind_s
from des.plan.synchronisation import Synchronisation, fragments_due

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


def mean_step_s(problem: PlanningProblem, plan: Plan) -> float:
    """Time of a step of a plan, mean over a period of its synchronisation. [s]

    What `PlanningProblem.judge` says of a plan is its first step, in which such plans exchange
    nothing. Here are the rules of `des.training.training_run` on links that stand still: an
    exchange that continues behind steps waits for those before it, then has the links to itself,
    and steps wait for a late one. The second period counts; nothing is under way when the first
    begins.

    Raises
    ------
    ValueError
        If links move within an iteration, as `des` simulates every step of a training on them.
    """
    if problem.topology.movement is not None:
        raise ValueError("mean step: topology must stand still; give topology.at_start()")
    mode = plan.synchronisation
    overlap_steps = mode.overlap_steps
    plain_s: float | None = None
    under_way: deque[tuple[int, float]] = deque()
    now_s = free_s = first_period_s = 0.0
    for step in range(2 * mode.steps_between):
        if step == mode.steps_between:
            first_period_s = now_s
        is_due = plan.replicas and fragments_due(mode, step, problem.workload.num_layers)
        if is_due and overlap_steps == 0:
            now_s += _step_s(problem, plan, step)
        else:
            plain_s = _step_s(problem, plan, step) if plain_s is None else plain_s
            now_s += plain_s
        if is_due and overlap_steps > 0:
            free_s = max(now_s, free_s) + exchange_behind_s(
                problem.topology, problem.workload, plan, step, problem.corrections
            )
            under_way.append((step, free_s))
        while under_way and under_way[0][0] + overlap_steps <= step:
            now_s = max(now_s, under_way.popleft()[1])
    return (now_s - first_period_s) / mode.steps_between


def _step_s(problem: PlanningProblem, plan: Plan, step: int) -> float:
    """Time of one step, with the exchanges that it waits for. [s]"""
    epoch = simulate_epoch(
        problem.topology,
        problem.workload,
        plan,
        corrections=problem.corrections,
        first_step=step,
        simulator=problem.simulator,
    )
    return epoch.duration_s


def _plan(problem: PlanningProblem, synchronisation: Synchronisation) -> Plan:
    first, *others = whole_model_replicas(problem)
    return Plan(
        placement=first,
        schedule=problem.schedule,
        replicas=tuple(others),
        synchronisation=synchronisation,
    )
