"""One scene of the explorer: settings, and the world, plan, times and figures that follow."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.planners.bounds.step_bound import least_bound_s
from des import (
    DEFAULT_SCHEDULE,
    EVERY_STEP,
    DiLoCo,
    Domain,
    IterationResult,
    MissingPriceError,
    Placement,
    Plan,
    StreamingDiLoCo,
    Topology,
    Workload,
    cost_of,
    lower,
)
from des.base.checks import require_count, require_one_of, require_positive
from des.compiled.simulate import simulate_program
from des.job.models import layers_note
from des.job.precision import precision_named
from des.plan.synchronisation import Synchronisation
from des.views.plan_views import PlanViews, views_of_result
from des.world.domain import layer_times_text
from des.worlds.world_flags import LayerFlags, NetworkFlag

FAMILY_NAMES: tuple[Family, ...] = (
    "single",
    "pipeline",
    "replicas",
    "diloco",
    "streaming_diloco",
)
"""Families whose plans follow from the settings alone, without a search."""

_MODES: dict[Family, Synchronisation] = {
    "diloco": DiLoCo(steps_between=100, bits_per_value=16.0),
    "streaming_diloco": StreamingDiLoCo(steps_between=100, bits_per_value=4.0, overlap_steps=1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LayerFlags, NetworkFlag):
    """Positions of all controls, and flags that have none.

    Attributes
    ----------
    num_gpus
        Of every domain; None: as the file has them. Whole servers where the file has servers.
    """

    bandwidth_factor: float = 1.0
    latency_factor: float = 1.0
    num_gpus: int | None = None
    num_sequences: int = 32
    family: Family = "pipeline"
    schedule: str = DEFAULT_SCHEDULE

    def __post_init__(self) -> None:
        require_positive("explorer", "bandwidth_factor", self.bandwidth_factor)
        require_positive("explorer", "latency_factor", self.latency_factor)
        require_count("explorer", "num_sequences", self.num_sequences)
        if self.num_gpus is not None:
            require_count("explorer", "num_gpus", self.num_gpus)
        require_one_of("explorer", "family", self.family, FAMILY_NAMES)

    @property
    def job(self) -> TrainingJob:
        """Model and sequences of a step."""
        return TrainingJob(
            model=self.model,
            num_sequences=self.num_sequences,
            sequence_length=self.sequence_length,
            num_layers=self.num_layers,
            precision=precision_named("explorer", self.precision),
        )

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step."""
        return self.num_sequences * self.sequence_length


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Outcome of the settings."""

    settings: Settings
    topology: Topology
    workload: Workload
    plan: Plan
    result: IterationResult
    views: PlanViews

    def sentences(self) -> dict[str, str]:
        """Say settings, layer times, time, bottleneck, cost, memory and bound, by these names."""
        return self.quick_sentences() | {"bound": self.bound_sentence()}

    def quick_sentences(self) -> dict[str, str]:
        """Say all but the bound, whose proof takes longer than the simulation."""
        result = self.result
        busy = {f"{use.source} to {use.target}": use.busy_s for use in result.links}
        for stage in result.stages:
            busy[stage.domain] = max(busy.get(stage.domain, 0.0), stage.busy_s)
        name = max(busy, key=lambda one: busy[one])
        fullest = max(result.memory, key=lambda one: one.required_bytes / one.capacity_bytes)
        share = 100 * fullest.required_bytes / fullest.capacity_bytes
        tokens_per_s = self.workload.tokens_per_iteration / result.makespan_s
        chosen = self.settings
        gpus = sum(domain.num_gpus for domain in self.topology.domains)
        return {
            "settings": f"bandwidth x {chosen.bandwidth_factor:.3g}, latency x "
            f"{chosen.latency_factor:.3g}, {gpus} GPUs, {chosen.tokens_per_step:,} tokens a step"
            + "".join(f"; {note}" for note in layers_note(self.workload)),
            "layer times": layer_times_text(self.topology.domains),
            "time": f"{result.makespan_s:.4g} s a step, {tokens_per_s:,.0f} tokens/s",
            "bottleneck": f"{name}, busy {100 * busy[name] / result.makespan_s:.0f} % of a step",
            "cost": self._cost(),
            "memory": f"{fullest.domain} is fullest, {share:.0f} %"
            + ("" if result.fits_memory else ": the plan does not fit"),
        }

    def bound_sentence(self) -> str:
        """Say how far the plan is from a time that no plan is below."""
        if self.settings.family in _MODES:
            return "none: the family changes the training"
        try:
            bound_s = _bound_s(self.topology, self.settings.job)
        except ValueError as error:
            return f"none: {error}"
        over = 100 * (self.result.makespan_s / bound_s - 1.0)
        return f"no plan is below {bound_s:.4g} s; this one is {over:.0f} % above"

    def _cost(self) -> str:
        try:
            cost = cost_of(self.result, self.topology)
        except MissingPriceError:
            return "unknown: the world has no prices"
        return f"{cost.total_usd:.4g} USD a step, {cost.communication_usd:.4g} of it for links"


@lru_cache(maxsize=8)
def scene_of(settings: Settings) -> Scene:
    """Return the scene of settings.

    Raises
    ------
    ValueError
        If the network cannot be read, a name is unknown, or no link leads where the plan sends.
    """
    topology = _world(settings)
    workload = settings.job.workload(1)
    plan = scene_plan(settings, topology, workload)
    program = lower(topology, workload, plan)
    result = simulate_program(topology, program)
    title = f"{settings.family.replace('_', ' ')}, {settings.schedule}"
    views = views_of_result(topology, program, result, title=title)
    return Scene(
        settings=settings,
        topology=topology,
        workload=workload,
        plan=plan,
        result=result,
        views=views,
    )


def scene_plan(settings: Settings, topology: Topology, workload: Workload) -> Plan:
    """Return the plan of a family: layers in even parts, or a whole copy in every domain."""
    num_layers, num_domains = workload.num_layers, topology.num_domains
    if settings.family == "pipeline":
        used = min(num_domains, num_layers)
        counts = [num_layers // used + (at < num_layers % used) for at in range(used)]
        text = ",".join(f"{at}*{count}" for at, count in enumerate(counts))
        return Plan(placement=Placement.parse(text), schedule=settings.schedule)
    whole = [Placement.parse(f"{at}*{num_layers}") for at in range(num_domains)]
    if settings.family == "single":
        speeds = [domain.attainable_flops_per_s for domain in topology.domains]
        return Plan(placement=whole[int(np.argmax(speeds))], schedule=settings.schedule)
    first, *others = whole[: settings.num_sequences]
    return Plan(
        placement=first,
        replicas=tuple(others),
        schedule=settings.schedule,
        synchronisation=_MODES.get(settings.family, EVERY_STEP) if others else EVERY_STEP,
    )


@lru_cache(maxsize=8)
def _read(profile: LayerFlags, network: str) -> Topology:
    return profile.world(network).at_start()


@lru_cache(maxsize=64)
def _world(settings: Settings) -> Topology:
    fields = ("profile", "profile_gpu", "extrapolate")
    profile = LayerFlags(**{name: getattr(settings, name) for name in fields})
    base, num_gpus = _read(profile, settings.network), settings.num_gpus
    ones = np.ones(len(base.links))
    scaled = base.scaled(settings.bandwidth_factor * ones, settings.latency_factor * ones)
    scaled = replace(scaled, routing_latencies_s=None)  # another world, not another epoch of it
    if num_gpus is None:
        return scaled
    return replace(scaled, domains=tuple(_resize(one, num_gpus) for one in base.domains))


def _resize(domain: Domain, num_gpus: int) -> Domain:
    """The domain with a number of GPUs, rounded up to whole servers where it has servers."""
    if domain.nodes is None:
        return replace(domain, num_gpus=num_gpus)
    each = domain.nodes.gpus_per_node
    return domain.resized(-(-num_gpus // each))


@lru_cache(maxsize=64)
def _bound_s(topology: Topology, job: TrainingJob) -> float:
    problem = WholeProblem(topology=topology, job=job, space=PlanSpace())
    return least_bound_s(problem)
