"""Settings of bound plans: degrees, microbatches, recomputation and schedule that stages share."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from agents.decision.training_job import TrainingJob
from des import Parallelism, Topology, Workload
from des.costs.copy_collectives import shared_expert_parameters
from des.costs.memory import model_state_bytes
from des.costs.profiled_times import is_measured
from des.job.models import architecture_named
from des.job.transformer import GradientPrecision
from des.plan.parallelism import Sharding
from des.schedules.registry import Pace, has_pace, pace_of
from des.world.domain import Domain
from des.world.layer_profiles import PointPlace

MOST_TENSOR = 8
"""Most GPUs that share a layer: those of one server with fast links among them."""

MOST_CONTEXT = 8
"""Most parts of a sequence that GPUs divide among them."""

_CONTEXT_TOKENS = 8192
"""Tokens of a sequence that are left to each part, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """GPUs of one stage: ``tensor x context x data``, and over how many copies experts lie.

    ``is_perfect``: all GPUs of a site are one device that loses nothing to sharing.
    """

    tensor: int
    data: int = 1
    context: int = 1
    expert: int = 1
    sharding: Sharding = "none"
    is_perfect: bool = False

    @property
    def copies(self) -> int:
        """Copies of the weights of a stage."""
        return self.data * self.context

    def gpus_in(self, domain: Domain) -> int:
        """GPUs of a stage in a domain."""
        return domain.num_gpus if self.is_perfect else self.tensor * self.copies

    def division(self, num_devices: int) -> Parallelism | None:
        """Return what times are worked out with, see `des.costs`; None for a perfect device."""
        return None if self.is_perfect else self.parallelism(num_devices)

    def parallelism(self, num_devices: int, num_chunks: int = 1) -> Parallelism:
        """Return the division of a site among the GPUs of its stages."""
        return _parallelism(self, num_devices, num_chunks)


@lru_cache(maxsize=4096)
def of_one_copy(degrees: Degrees) -> Degrees:
    """Degrees of a copy of the weights alone."""
    return replace(degrees, data=1, sharding="none")


@lru_cache(maxsize=4096)
def _parallelism(degrees: Degrees, num_devices: int, num_chunks: int) -> Parallelism:
    return Parallelism(
        tensor=degrees.tensor,
        data=degrees.data,
        pipeline=num_devices,
        sharding=degrees.sharding,
        chunks=num_chunks,
        context=degrees.context,
        expert=degrees.expert,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSetting:
    """All of a bound plan but its sites, the stages of each, and their layers.

    Attributes
    ----------
    microbatch_size
        Sequences of a microbatch on one data rank, as trainers count them.
    num_replicas
        Pipelines that train side by side on different sites.
    schedule
        Name of the schedule without the size of its groups.
    group_factor
        Microbatches of a group over the stages of the pipeline, of the interleaved schedule.
    is_even
        Whether all stages have equally many layers.
    whole_groups
        Whether a last group of microbatches has at least as many as the pipeline has devices.
    own_sequences
        Sequences that a pipeline beside others does in a step; 0: as many as each of the others.
    has_outer_state
        Whether the pipeline seldom exchanges with others, so it has an outer optimiser.
    """

    degrees: Degrees
    microbatch_size: int
    recomputation: str
    gradient_precision: GradientPrecision
    schedule: str
    num_chunks: int = 1
    group_factor: float = 1.0
    num_replicas: int = 1
    is_blocking: bool = False
    is_even: bool = False
    whole_groups: bool = False
    own_sequences: int = 0
    has_outer_state: bool = False

    def workload(self, job: TrainingJob) -> Workload:
        """Workload of the job: a microbatch has the sequences of all data ranks of a stage."""
        size = self.microbatch_size * self.degrees.data
        return job.workload(size, self.recomputation, self.gradient_precision)

    @property
    def pace(self) -> Pace:
        """Pace of the schedule; the interleaved one has its own order and none."""
        return _pace_named(self.schedule)

    def schedule_name(self, num_workers: int) -> str:
        """Name of the schedule for `des.schedules`."""
        size = round(self.group_factor * num_workers)
        if self.num_chunks == 1 or size == num_workers:
            return self.schedule
        return f"{self.schedule}_{size / num_workers:.9g}x"


def differences(setting: BoundSetting) -> tuple[Hashable, ...]:
    """All of a setting that its figures depend on."""
    return (
        *(setting.degrees, setting.microbatch_size, setting.recomputation),
        *(setting.gradient_precision, setting.num_replicas, setting.has_outer_state),
    )


@lru_cache(maxsize=256)
def _pace_named(schedule: str) -> Pace:
    return pace_of(schedule) if has_pace(schedule) else Pace(1.0)


def together_of(setting: BoundSetting) -> int:
    """Sequences of a microbatch on all data ranks of a stage."""
    return setting.microbatch_size * setting.degrees.data


def num_stages_of(domain: Domain, degrees: Degrees) -> int:
    """Stages of some degrees that the servers of a domain hold; none straddles servers unevenly."""
    size = degrees.gpus_in(domain)
    if domain.nodes is None or degrees.is_perfect:
        return domain.num_gpus // size
    per_server = domain.nodes.gpus_per_node
    block = degrees.tensor * degrees.context
    for each in (size, block) if degrees.context > 1 else (size,):
        if per_server % each and each % per_server:
            return 0
    if per_server % degrees.tensor:
        return 0
    return domain.num_gpus // size


def most_context_of(topology: Topology, job: TrainingJob) -> int:
    """Most parts that a sequence is long enough for; 1 where a profile has no times of parts.

    Examples
    --------
    >>> from des import read_topology
    >>> world = read_topology("four_uneven")
    >>> job = TrainingJob(model="llama2_7b", num_sequences=8, sequence_length=32768)
    >>> most_context_of(world, job)
    4
    """
    if any(domain.profile is not None for domain in topology.domains):
        return 1
    return max(1, min(MOST_CONTEXT, job.sequence_length // _CONTEXT_TOKENS))


def is_measured_everywhere(
    topology: Topology, job: TrainingJob, degrees: Degrees, microbatch_size: int
) -> bool:
    """Whether profiles of all domains that have one know layers of some degrees and microbatches.

    Experts that are shared are known to profiles that extrapolate alone.
    """
    place = PointPlace(degrees.tensor, microbatch_size, job.sequence_length)
    return all(
        is_measured(profile, architecture_named(job.model), place)
        and (degrees.expert == 1 or profile.extrapolates)
        for profile in dict.fromkeys(domain.profile for domain in topology.domains)
        if profile is not None
    )


def degrees_of(
    topology: Topology, job: TrainingJob, *, sharding: Sharding, most_context: int = 1
) -> Iterator[Degrees]:
    """Degrees of which at least one stage fits into a site, all GPUs of a group on one server."""
    architecture = architecture_named(job.model)
    experts = architecture.experts
    largest = max(domain.num_gpus for domain in topology.domains)
    tensor = 1
    while tensor <= min(MOST_TENSOR, largest, architecture.num_heads):
        for context in _powers_to(most_context):
            if job.sequence_length % context:
                continue
            for data in _divisors_to(job.num_sequences, largest // (tensor * context)):
                copies = data * context
                most = 1 if experts is None else experts.num_experts
                for expert in _powers_to(min(copies, most)):
                    if copies % expert or (experts and experts.num_experts % expert):
                        continue
                    degrees = Degrees(
                        tensor=tensor,
                        data=data,
                        context=context,
                        expert=expert,
                        sharding=sharding if copies > 1 else "none",
                    )
                    if any(num_stages_of(domain, degrees) for domain in topology.domains):
                        yield degrees
        tensor *= 2


def has_room(
    topology: Topology, job: TrainingJob, precision: GradientPrecision, degrees: Degrees
) -> bool:
    """Whether the model's state fits into the stages that all sites have, activations apart."""
    there = sum(
        num_stages_of(domain, degrees) * degrees.gpus_in(domain) * domain.gpu_memory_bytes
        for domain in topology.domains
    )
    return _state_bytes(job, precision, degrees) <= there


@lru_cache(maxsize=1024)
def _state_bytes(job: TrainingJob, precision: GradientPrecision, degrees: Degrees) -> float:
    """State of the model of all stages of one pipeline."""
    parallelism, workload = degrees.parallelism(1), job.workload(1, "flash", precision)
    parameters = workload.sums_before.num_parameters[-1]
    routed = shared_expert_parameters(workload, [(0, workload.num_layers)], parallelism)
    return model_state_bytes(workload, parameters, parallelism, routed)


def _powers_to(most: int) -> Iterator[int]:
    """Powers of two up to a number."""
    power = 1
    while power <= most:
        yield power
        power *= 2


def _divisors_to(total: int, most: int) -> Iterator[int]:
    """Divisors of a number up to another one."""
    return (each for each in range(1, min(total, most) + 1) if total % each == 0)
