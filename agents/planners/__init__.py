"""Planners to compare a policy with: each looks at one decision and returns a placement."""

from agents.planners.exact import exact
from agents.planners.problem import Planner, PlanningProblem
from agents.planners.single_domain import single_domain
from agents.planners.static import proportional, random, round_robin, uniform

PLANNERS: dict[str, Planner] = {
    "exact": exact,
    "uniform": uniform,
    "proportional": proportional,
    "round_robin": round_robin,
    "random": random,
    "single_domain": single_domain,
}
"""Planners by the name users write."""

__all__ = ["PLANNERS", "Planner", "PlanningProblem"]
