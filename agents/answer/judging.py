"""Judging of single plans of any family."""

from agents.decision.whole_plan import JudgedPlan, WholeProblem
from agents.judge.step_times import step_times_s
from des import Plan, Workload
from des.compiled.simulate import simulate_compiled


def judged_plan(problem: WholeProblem, workload: Workload, plan: Plan) -> JudgedPlan:
    """Judge a plan, whether it fits into memory or not, by the mean time of its steps.

    Raises
    ------
    UnreachableError
        If it sends where no links lead.
    """
    (step_s,) = step_times_s(
        problem.topology, workload, [plan], problem.corrections, simulator=simulate_compiled
    )
    return JudgedPlan(workload=workload, plan=plan, step_s=float(step_s))
