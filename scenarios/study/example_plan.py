"""The world and plan that stand on the first screen of reports on many worlds."""

from agents.planners.search.search import search
from agents.trainers.ideal import IDEAL
from agents.trainers.trainer import Trainer
from des import InfeasiblePlacementError, lower
from des.compiled.simulate import simulate_compiled
from des.views.plan_views import PlanViews, known_places, plan_views
from des.views.site_map import site_map
from scenarios.study.trained_plans import searched_plans
from scenarios.suites import SuiteWorld

_MOST_JUDGED = 100_000


def example_views(world: SuiteWorld, trainer: Trainer = IDEAL) -> PlanViews:
    """Return the figures of the plan that a short search finds at base figures.

    For a trainer it is the best of `searched_plans`. Where no plan fits, the map alone.
    """
    topology, workload = world.topology, world.workload
    try:
        if not trainer.is_ideal:
            bound = searched_plans(topology, workload, trainer).best.bound
            title = f"{workload.name} on {world.name}: {bound.step_s:.5g} s a step, {trainer.name}"
            return plan_views(topology, lower(topology, bound.workload, bound.plan), title=title)
        found = search(topology, workload, simulator=simulate_compiled, max_judged=_MOST_JUDGED)
    except InfeasiblePlacementError:
        return PlanViews(first=(site_map(topology, places=known_places(topology)),), more=())
    title = f"{workload.name} on {world.name}: plan of a search at base figures"
    return plan_views(topology, lower(topology, workload, found.plan), title=title)
