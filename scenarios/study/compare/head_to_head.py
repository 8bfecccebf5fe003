"""The trained policies against planners: equal schedules for all, and all may plan again."""

from collections.abc import Callable

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.plan_space import HALVED_SCHEDULES, PlanSpace
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import TIME_ONLY, Scheduler, Situation
from agents.hi_ppo.bound_proposals import ScheduledProposer
from agents.hi_ppo.coordinator import QUICK, Coordinator
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.plan_source import ProposesPlans
from agents.hi_ppo.policies import Policies, shipped_files
from agents.hi_ppo.proposing import first_situation
from agents.planners.choice.depth import with_best_schedule
from agents.planners.names import POLICY
from agents.planners.table import PLANNERS
from agents.replanning.bound_schedulers import bound_scheduler, schedule_plan
from agents.replanning.search_schedulers import PlanEveryEpoch
from agents.replanning.table import HORIZON_EPOCHS
from agents.search.ideal_plans import ideal_plans
from agents.search.trainer_search import TrainerSearch
from agents.trainers.trainer import Trainer
from des import Plan, Topology, Workload
from des.base.command import UsageError
from des.compiled.simulate import simulate_compiled

EVERY_SCHEDULE = (*DEPTHS, *HALVED_SCHEDULES, "deep_1f1b", "greedy")
"""Schedules among which the plan of every method gets the quickest on perfect devices."""


def equal_planner(name: str, trainer: Trainer) -> Planner:
    """Return a planner, or the policies, under the quickest of all schedules of the trainer."""
    if name == POLICY:
        return lambda problem, rng: _decide(problem, trainer)
    own = PLANNERS[name].over_depths
    if trainer.is_ideal:
        return with_best_schedule(own, EVERY_SCHEDULE)
    return lambda problem, rng: schedule_plan(problem, own(problem, rng), trainer)


def equal_scheduler(name: str, trainer: Trainer) -> Scheduler:
    """Return the policies, or a planner that plans in every epoch, with the same schedules.

    A planner's plan is taken where that pays within `HORIZON_EPOCHS`, of all that it has found in
    the draw, judged as the trainer runs them.
    """
    if name == POLICY:
        return bound_scheduler(_coordinator(trainer), TrainerSearch(trainer=trainer))
    planner = equal_planner(name, trainer)
    return PlanEveryEpoch(HORIZON_EPOCHS, _finding(planner))


def _finding(planner: Planner) -> Callable[[Topology, Workload], Plan]:
    def find_plan(topology: Topology, workload: Workload) -> Plan:
        problem = PlanningProblem(
            topology=topology, workload=workload, schedules=DEPTHS, simulator=simulate_compiled
        )
        return planner(problem, np.random.default_rng(0))

    return find_plan


def _coordinator(trainer: Trainer) -> Coordinator:
    """The first shipped policies beside the search of all families, with all schedules."""
    path = next(iter(shipped_files()), None)
    if path is None:
        raise UsageError(f"--planners: {POLICY} needs trained policies, and none are shipped")
    policies = Policies.load(path)
    proposer: ProposesPlans = Proposer(policies.placement, look_ahead=QUICK)
    if trainer.is_ideal:
        proposer = ScheduledProposer(inner=proposer, schedules=EVERY_SCHEDULE)
    return Coordinator(
        proposer,
        policies.moves,
        trained_range=policies.trained_range,
        planner=_search,
        searches=True,
    )


def _search(situation: Situation, seed: int) -> Plan:
    """The best plan of all families on perfect devices under its best schedule."""
    problem = PlanningProblem(
        topology=leave_reserved_memory(situation),
        workload=situation.workload,
        corrections=situation.corrections,
        simulator=simulate_compiled,
    )
    found = ideal_plans(problem.topology, problem.workload, PlanSpace(), problem.corrections)
    scheduled = with_best_schedule(lambda problem, rng: found[0].plan, EVERY_SCHEDULE)
    return scheduled(problem, np.random.default_rng(seed))


def _decide(problem: PlanningProblem, trainer: Trainer) -> Plan:
    scheduler = equal_scheduler(POLICY, trainer)
    scheduler.begin()
    situation = first_situation(problem.topology, problem.workload, TIME_ONLY)
    return scheduler.decide(situation).plan
