"""Memory that plans need in their domains."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from des.base.arithmetic import held_bytes
from des.costs.bound_stages import BoundStage, by_device, runs_of
from des.costs.copy_collectives import HeldParameters, shared_expert_parameters
from des.costs.outer_state import outer_state_bytes
from des.costs.whole_layers import whole_layers_bytes
from des.job.transformer import GRADIENT_BYTES, OPTIMISER_BYTES, WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.parallelism import UNSHARED, Parallelism, Sharding
from des.schedules.check import Held
from des.world.domain import Domain

Peaks = tuple[tuple[tuple[Held, ...], ...], ...]
"""Activations of every worker at its potential peaks, by `peaks_held`."""


class InfeasiblePlacementError(ValueError):
    """The plan needs more memory than a domain has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMemory:
    """Peak memory that a plan needs in one domain, and what there is, all GPUs together.

    Where the GPUs of a domain hold different amounts, every one is counted as the fullest: a plan
    fits if that one does.
    """

    domain: str
    model_state_bytes: float
    activation_bytes: float
    capacity_bytes: float

    def __str__(self) -> str:
        return (
            f"domain {self.domain} must hold at most {self.capacity_bytes / 1e9:.1f} GB, "
            f"got {self.required_bytes / 1e9:.1f} GB ({self.model_state_bytes / 1e9:.1f} GB "
            f"model state and {self.activation_bytes / 1e9:.1f} GB activations)"
        )

    @property
    def required_bytes(self) -> float:
        """Model state and activations together. [bytes]"""
        return self.model_state_bytes + self.activation_bytes

    @property
    def fits(self) -> bool:
        """Whether the domain has that much memory."""
        return self.required_bytes <= self.capacity_bytes

    @property
    def overflow_fraction(self) -> float:
        """Missing memory as a share of the capacity; 0 where the plan fits."""
        return max(0.0, self.required_bytes / self.capacity_bytes - 1.0)


class ParameterBytes(NamedTuple):
    """Bytes of state for each parameter, all GPUs of a device together. [bytes]"""

    weight: int
    gradient: int
    optimiser: int


@lru_cache(maxsize=1024)
def bytes_per_parameter(
    parallelism: Parallelism | None,
    gradient_bytes: int = GRADIENT_BYTES,
    *,
    of_experts: bool = False,
) -> ParameterBytes:
    """Model state of a device: once a copy, but once for all of them what these shard [1]_.

    There is one copy for each of ``data`` x ``context``; of experts see
    `Parallelism.expert_copies`.

    References
    ----------
    .. [1] S. Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter
       models", SC'20, section 5: 4 + 12 / d, 2 + 14 / d and 16 / d bytes a GPU for d replicas.

    Examples
    --------
    >>> bytes_per_parameter(Parallelism(data=4, sharding="optimiser"))
    ParameterBytes(weight=8, gradient=8, optimiser=12)
    >>> bytes_per_parameter(Parallelism(data=4, sharding="parameters"))
    ParameterBytes(weight=2, gradient=2, optimiser=12)
    """
    shared = parallelism or UNSHARED
    num_copies = shared.expert_copies if of_experts else shared.copies

    def copies(state: Sharding) -> int:
        return 1 if shared.shards(state) else num_copies

    return ParameterBytes(
        weight=copies("parameters") * WEIGHT_BYTES,
        gradient=copies("gradients") * gradient_bytes,
        optimiser=copies("optimiser") * OPTIMISER_BYTES,
    )


def model_state_bytes(
    workload: Workload,
    num_parameters: float,
    parallelism: Parallelism | None,
    num_of_experts: float = 0.0,
    *,
    num_shards: int = 1,
) -> float:
    """Model state of a device's layers, all its GPUs together. [bytes]

    Of the parameters ``num_of_experts`` belong to experts that copies share. ``num_shards``
    replicas share the optimiser's state, see `Plan.optimiser_shards`.
    """
    size = workload.gradient_bytes
    common = _of_shard(bytes_per_parameter(parallelism, size), num_shards)
    routed = _of_shard(bytes_per_parameter(parallelism, size, of_experts=True), num_shards)
    return common * (num_parameters - num_of_experts) + routed * num_of_experts


def _of_shard(state: ParameterBytes, num_shards: int) -> float:
    """Bytes of a parameter where each replica has a part of the optimiser's state. [bytes]"""
    return state.weight + state.gradient + state.optimiser / num_shards


def kept_bytes(workload: Workload, stage: BoundStage) -> tuple[float, float]:
    """Activations that a stage keeps of one microbatch, all GPUs of its device together. [bytes]

    First what waits for the input gradient, then what waits for the weight gradient. Without
    sequence parallelism each GPU of a tensor group has a copy of the replicated part.
    """
    sums, total, shared = workload.sums_before, stage.stage.total, stage.parallelism
    whole, halved = total(sums.activation_bytes), total(sums.weight_input_bytes)
    if shared is None or shared.sequence_parallel:
        return whole, halved
    copies = shared.tensor - 1
    return (
        whole + copies * total(sums.replicated_activation_bytes),
        halved + copies * total(sums.replicated_input_bytes),
    )


def memory_of_peaks(
    workload: Workload, domains: Sequence[Domain], stages: Sequence[BoundStage], peaks: Peaks
) -> tuple[DomainMemory, ...]:
    """Peak memory of every domain, in order, with the activations that workers hold at their peaks.

    Activations are spread over all GPUs of a device, but see `kept_bytes`. Each worker holds those
    of as many microbatches as its order has in flight; the peaks of several workers of one device
    are added, although they need not fall on the same moment.
    """
    fullest = [(0.0, 0.0)] * len(domains)
    stages_of = by_device(stages)
    for device, peak_bytes in _peaks_of_devices(workload, stages, peaks).items():
        own = stages_of[device]
        count = own[0].domain.num_gpus / own[0].num_gpus
        model_bytes, whole_bytes, outer_bytes = device_state(workload, own)
        found = (count * (model_bytes + whole_bytes + outer_bytes), count * peak_bytes)
        index = own[0].stage.domain
        fullest[index] = max(fullest[index], found, key=sum)
    return tuple(
        DomainMemory(
            domain=domain.name,
            model_state_bytes=state,
            activation_bytes=activation_bytes,
            capacity_bytes=domain.memory_bytes,
        )
        for domain, (state, activation_bytes) in zip(domains, fullest, strict=True)
    )


def _peaks_of_devices(
    workload: Workload, stages: Sequence[BoundStage], peaks: Peaks
) -> dict[int, float]:
    """Most activations of every device that works. [bytes]"""
    kept = [kept_bytes(workload, one) for one in stages]
    found: dict[int, float] = {}
    for moments in peaks:
        peak = 0.0
        for moment in moments:
            found_bytes = 0.0
            for stage, num_whole, num_halved in moment:
                found_bytes += held_bytes(num_whole, num_halved, *kept[stage])
            peak = max(peak, found_bytes)
        if moments:  # else a worker that has nothing to do
            device = stages[moments[0][0].stage].device
            found[device] = found.get(device, 0.0) + peak
    return found


class DeviceState(NamedTuple):
    """Model state of a device, with whole layers and outer state, all GPUs together. [bytes]"""

    model_bytes: float
    whole_layers_bytes: float
    outer_bytes: float


def device_state(workload: Workload, stages: Sequence[BoundStage]) -> DeviceState:
    """State of the stages of one device."""
    first, runs = stages[0], runs_of(stages)
    shared, shards = first.parallelism, first.optimiser_shards
    everything = device_parameters(workload, stages)
    of_experts = shared_expert_parameters(workload, runs, shared)
    held = HeldParameters(everything - of_experts, of_experts)
    return DeviceState(
        model_state_bytes(workload, everything, shared, of_experts, num_shards=shards),
        whole_layers_bytes(workload, runs, shared),
        outer_state_bytes(held, shared) if first.holds_outer_state else 0.0,
    )


def device_parameters(workload: Workload, stages: Sequence[BoundStage]) -> float:
    """Parameters of all stages of one device."""
    sums_before = workload.sums_before.num_parameters
    return sum(one.stage.total(sums_before) for one in stages)


def activation_room_bytes(workload: Workload, stages: Sequence[BoundStage]) -> float:
    """Memory that is left for activations on the device of some stages; negative if too little."""
    first, (model_bytes, whole_bytes, outer_bytes) = stages[0], device_state(workload, stages)
    capacity_bytes = first.domain.gpu_memory_bytes * first.num_gpus
    return capacity_bytes - model_bytes - whole_bytes - outer_bytes


class GpuMemory(NamedTuple):
    """State of each GPU of one device of a domain at all times, and its memory. [bytes]"""

    domain: str
    device: int
    num_gpus: int
    weight_bytes: float
    gradient_bytes: float
    optimiser_bytes: float
    whole_layers_bytes: float
    outer_state_bytes: float
    capacity_bytes: float


def gpu_memory(workload: Workload, stages: Sequence[BoundStage]) -> GpuMemory:
    """Memory of a GPU of the device of some stages; all of a device hold the same."""
    first, runs = stages[0], runs_of(stages)
    shared, num_gpus, size = first.parallelism, first.num_gpus, workload.gradient_bytes
    sums_before = workload.sums_before.num_parameters
    experts = shared_expert_parameters(workload, runs, shared) / num_gpus
    others = sum(one.stage.total(sums_before) / num_gpus for one in stages) - experts
    common = bytes_per_parameter(shared, size)
    routed = bytes_per_parameter(shared, size, of_experts=True)
    held = HeldParameters(others, experts)
    return GpuMemory(
        first.domain.name,
        first.stage.device,
        num_gpus,
        weight_bytes=common.weight * others + routed.weight * experts,
        gradient_bytes=common.gradient * others + routed.gradient * experts,
        optimiser_bytes=(common.optimiser * others + routed.optimiser * experts)
        / first.optimiser_shards,
        whole_layers_bytes=whole_layers_bytes(workload, runs, shared) / num_gpus,
        outer_state_bytes=outer_state_bytes(held, shared) if first.holds_outer_state else 0.0,
        capacity_bytes=first.domain.gpu_memory_bytes,
    )
