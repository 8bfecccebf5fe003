"""A small job under watch: three sites of eight GPUs each, and observations of its world."""

from bound_cases import site, sites

from agents.decision.training_job import TrainingJob
from agents.replanning.observed_world import ObservedWorld, WorldObservation
from agents.replanning.other_plans import OtherPlans
from agents.replanning.stay_or_move import PayoffRule
from agents.replanning.watch import Watch
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des.plan.replacement import Replacement

WORLD = sites(site("A", 8, None), site("B", 8, None), site("C", 8, None))
JOB = TrainingJob.of_tokens("llama2_7b", 8 * 4096, 4096, None)
REQUEST = PlanRequest(topology=WORLD, job=JOB, trainer=trainer_named("megatron"))
START_S = 1.7e9


def watch(*, restart_s=60.0, horizon_s=86_400.0):
    """A watch that has seen nothing; moves send their bytes and restart in a given time."""
    return Watch(
        world=ObservedWorld(base=WORLD, time_constant_s=300.0),
        others=OtherPlans(request=REQUEST),
        rule=PayoffRule(horizon_s=horizon_s),
        replacement=Replacement(restart_s=restart_s),
    )


def seen(minute, about, figure, value):
    """One observation."""
    return WorldObservation(
        time_s=START_S + 60.0 * minute, about=about, figure=figure, value=float(value)
    )


def after(watching, minute, *observations):
    """Verdict of a minute, after observations of it."""
    for about, figure, value in observations:
        watching.take(seen(minute, about, figure, value))
    return watching.decide(START_S + 60.0 * minute)


def used_sites(plan):
    """Names of the sites that hold layers."""
    names = list(plan.topology.index_of)
    return {names[domain] for one in plan.plan.placements for domain in one.domain_of_layer}
