"""Plans that a trainer runs, in place of what methods plan for perfect devices.

With the world and plan that stand on the first screen of reports on many worlds.
"""

from collections.abc import Iterable
from dataclasses import replace

from agents.decision.depths import DEPTHS
from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.decision.problem import PlanningProblem
from agents.decision.trained_workload import trained_workload, whole_shape
from agents.decision.training_job import TrainingJob
from agents.planners.search.search import search
from agents.search.bound_search import BoundFound, search_bound
from agents.search.search import MICROBATCH_SIZES, PlanRequest
from agents.trainers.ideal import IDEAL
from agents.trainers.trainer import Trainer
from des import InfeasiblePlacementError, Topology, Workload, lower
from des.compiled.simulate import simulate_compiled
from des.plan.plan_texts import PERFECT_DEVICES
from des.views.plan_views import PlanViews, known_places, plan_views
from des.views.site_map import site_map
from des.world.domain import layer_times_text
from scenarios.suites import SuiteWorld


def trained_world(world: SuiteWorld, trainer: Trainer) -> SuiteWorld:
    """Return the world with the job as the trainer trains it."""
    return replace(world, workload=trained_workload(world.workload, trainer))


def search_plans(
    topology: Topology,
    workload: Workload,
    trainer: Trainer,
    families: tuple[Family, ...] | None = None,
) -> BoundFound:
    """Return what ``python -m agents.decide`` finds for the sequences of a workload.

    With ``families`` the best of these by the time of a step alone, whatever the tokens it needs,
    under the schedules of a `PlanSpace`; None: all that the trainer runs.

    Raises
    ------
    InfeasiblePlacementError
        If none fits.
    """
    size = int(whole_shape(workload).batch_size)
    plain = replace(workload, gradient_precision="bf16")
    request = PlanRequest(
        topology=topology,
        job=TrainingJob.of(plain, microbatch_size=size),
        trainer=trainer,
        microbatch_sizes=tuple(sorted({*MICROBATCH_SIZES, size})),
    )
    if families is not None:
        space = PlanSpace(families=families)
        request = replace(
            request,
            token_factor=1.0,
            recomputations=("flash",),
            families=families,
            schedules=space.schedules,
            outer_modes=space.outer_modes,
        )
    return search_bound(request)


def depth_problem(topology: Topology, workload: Workload, schedule: str) -> PlanningProblem:
    """Problem of planners of perfect devices: all have the same search for the depth."""
    return PlanningProblem(
        topology=topology,
        workload=workload,
        schedule=schedule,
        schedules=DEPTHS,
        simulator=simulate_compiled,
    )


def devices_note(trainer: Trainer, worlds: Iterable[SuiteWorld]) -> str:
    """Say what runs the plans of a comparison, and where layer times on its worlds are from."""
    bound = f"plans are bound to GPUs as trainer {trainer.name} runs them"
    sources = dict.fromkeys(layer_times_text(one.topology.domains) for one in worlds)
    return f"{PERFECT_DEVICES if trainer.is_ideal else bound}; layer times: {'; '.join(sources)}"


_MOST_JUDGED = 100_000


def example_views(world: SuiteWorld, trainer: Trainer = IDEAL) -> PlanViews:
    """Return the figures of the plan that a short search finds at base figures.

    For a trainer it is the best of `search_plans`. Where no plan fits, the map alone.
    """
    topology, workload = world.topology, world.workload
    try:
        if not trainer.is_ideal:
            bound = search_plans(topology, workload, trainer).best.bound
            title = f"{workload.name} on {world.name}: {bound.step_s:.5g} s a step, {trainer.name}"
            return plan_views(topology, lower(topology, bound.workload, bound.plan), title=title)
        found = search(topology, workload, simulator=simulate_compiled, max_judged=_MOST_JUDGED)
    except InfeasiblePlacementError:
        return PlanViews(first=(site_map(topology, places=known_places(topology)),), more=())
    title = f"{workload.name} on {world.name}: plan of a search at base figures"
    return plan_views(topology, lower(topology, workload, found.plan), title=title)
