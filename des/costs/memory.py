"""Memory that plans need in their domains."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from des.base.arithmetic import held_bytes
from des.costs.copy_collectives import HeldParameters, shared_expert_parameters
from des.costs.outer_state import outer_state_bytes
from des.costs.whole_layers import whole_layers_bytes
from des.job.transformer import GRADIENT_BYTES, OPTIMISER_BYTES, WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.parallelism import UNSHARED, Parallelism, Sharding
from des.plan.placement import Stage
from des.plan.plan import Plan
from des.schedules import Orders, peaks_held
from des.schedules.check import Held
from des.world.domain import Domain
from des.world.topology import Topology

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

    There is one copy for each of ``data`` x ``context``, of experts fewer by ``expert``.

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
    num_copies = shared.copies // (shared.expert if of_experts else 1)

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


def kept_bytes(
    workload: Workload, stage: Stage, parallelism: Parallelism | None
) -> tuple[float, float]:
    """Activations that a stage keeps of one microbatch, all GPUs of its device together. [bytes]

    First what waits for the input gradient, then what waits for the weight gradient. Without
    sequence parallelism each GPU of a tensor group has a copy of the replicated part.
    """
    sums = workload.sums_before
    whole, halved = stage.total(sums.activation_bytes), stage.total(sums.weight_input_bytes)
    if parallelism is None or parallelism.sequence_parallel:
        return whole, halved
    copies = parallelism.tensor - 1
    return (
        whole + copies * stage.total(sums.replicated_activation_bytes),
        halved + copies * stage.total(sums.replicated_input_bytes),
    )


def memory_of_orders(
    topology: Topology, workload: Workload, plan: Plan, orders: Orders
) -> tuple[DomainMemory, ...]:
    """Peak memory of every domain, in the order of the topology.

    Activations are spread over all GPUs of a device, but see `kept_bytes`. Each worker holds those
    of as many microbatches as its order has in flight; the peaks of several workers of one device
    are added, although they need not fall on the same moment.
    """
    return memory_of_peaks(topology, workload, plan, peaks_held(orders))


def memory_of_peaks(
    topology: Topology, workload: Workload, plan: Plan, peaks: Peaks
) -> tuple[DomainMemory, ...]:
    """`memory_of_orders` of orders whose peaks are known."""
    fullest = [(0.0, 0.0)] * topology.num_domains
    domain_of_device = {
        device: stage.domain
        for stage, device in zip(plan.stages, plan.device_of_stage, strict=True)
    }
    parameters = parameters_of_devices(workload, plan)
    stages_of = stages_of_devices(plan)
    for device, peak_bytes in _peaks_of_devices(workload, plan, peaks).items():
        index = domain_of_device[device]
        domain, parallelism = topology.domains[index], plan.parallelism_of(index)
        runs = runs_of(stages_of[device])
        of_experts = shared_expert_parameters(workload, runs, parallelism)
        state_bytes = model_state_bytes(
            workload,
            parameters[device],
            parallelism,
            of_experts,
            num_shards=plan.optimiser_shards,
        )
        state_bytes += whole_layers_bytes(workload, runs, parallelism)
        held = HeldParameters(parameters[device] - of_experts, of_experts)
        state_bytes += outer_state_bytes(plan, held, parallelism)
        count = domain.num_gpus / gpus_of_device(domain, parallelism)
        found = (count * state_bytes, count * peak_bytes)
        fullest[index] = max(fullest[index], found, key=sum)
    return tuple(
        DomainMemory(
            domain=domain.name,
            model_state_bytes=state,
            activation_bytes=activation_bytes,
            capacity_bytes=domain.memory_bytes,
        )
        for domain, (state, activation_bytes) in zip(topology.domains, fullest, strict=True)
    )


def stages_of_devices(plan: Plan) -> dict[int, list[Stage]]:
    """Stages of each device, by its number."""
    stages_of: dict[int, list[Stage]] = {}
    for stage, device in zip(plan.stages, plan.device_of_stage, strict=True):
        stages_of.setdefault(device, []).append(stage)
    return stages_of


def parameters_of_devices(workload: Workload, plan: Plan) -> list[float]:
    """Parameters of all stages of each device."""
    sums_before = workload.sums_before.num_parameters
    parameters = [0.0] * (max(plan.device_of_stage) + 1)
    for stage, device in zip(plan.stages, plan.device_of_stage, strict=True):
        parameters[device] += stage.total(sums_before)
    return parameters


def _peaks_of_devices(workload: Workload, plan: Plan, peaks: Peaks) -> dict[int, float]:
    """Most activations of every device that works. [bytes]"""
    kept = [kept_bytes(workload, stage, plan.parallelism_of(stage.domain)) for stage in plan.stages]
    found: dict[int, float] = {}
    for moments in peaks:
        peak = 0.0
        for moment in moments:
            found_bytes = 0.0
            for stage, num_whole, num_halved in moment:
                found_bytes += held_bytes(num_whole, num_halved, *kept[stage])
            peak = max(peak, found_bytes)
        if moments:  # else a worker that has nothing to do
            device = plan.device_of_stage[moments[0][0].stage]
            found[device] = found.get(device, 0.0) + peak
    return found


def gpus_of_device(domain: Domain, parallelism: Parallelism | None) -> int:
    """GPUs that work as one device in a domain: all of them unless they share otherwise."""
    return domain.num_gpus if parallelism is None else parallelism.gpus_per_device


def activation_room_bytes(
    topology: Topology,
    workload: Workload,
    stages: Sequence[Stage],
    plan: Plan,
) -> float:
    """Memory that is left for activations on the device of some stages; negative if too little."""
    domain = topology.domains[stages[0].domain]
    shared = plan.parallelism_of(stages[0].domain)
    sums_before = workload.sums_before.num_parameters
    num_parameters = sum(stage.total(sums_before) for stage in stages)
    capacity_bytes = domain.gpu_memory_bytes * gpus_of_device(domain, shared)
    whole_bytes = whole_layers_bytes(workload, runs_of(stages), shared)
    of_experts = shared_expert_parameters(workload, runs_of(stages), shared)
    state_bytes = model_state_bytes(
        workload, num_parameters, shared, of_experts, num_shards=plan.optimiser_shards
    )
    held = HeldParameters(num_parameters - of_experts, of_experts)
    return capacity_bytes - state_bytes - whole_bytes - outer_state_bytes(plan, held, shared)


def runs_of(stages: Iterable[Stage]) -> list[tuple[int, int]]:
    """First layer and number of layers of each stage."""
    return [(stage.first_layer, stage.num_layers) for stage in stages]
