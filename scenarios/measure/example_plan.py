"""The world and plan that stand on the first screen of reports on many worlds."""

from agents.planners.search.search import search
from des import InfeasiblePlacementError, lower
from des.compiled.simulate import simulate_compiled
from des.views.plan_views import PlanViews, known_places, plan_views
from des.views.site_map import site_map
from scenarios.suites import SuiteWorld

_MOST_JUDGED = 100_000


def example_views(world: SuiteWorld) -> PlanViews:
    """Return the figures of the plan that a short search finds at base figures.

    Where no plan of one pipeline fits, the map alone.
    """
    topology, workload = world.topology, world.workload
    try:
        found = search(topology, workload, simulator=simulate_compiled, max_judged=_MOST_JUDGED)
    except InfeasiblePlacementError:
        return PlanViews(first=(site_map(topology, places=known_places(topology)),), more=())
    title = f"{workload.name} on {world.name}: plan of a search at base figures"
    return plan_views(topology, lower(topology, workload, found.plan), title=title)
