"""Memory of every GPU over one simulated iteration: model state, and activations that come and go.

A stage holds the activations of a microbatch from the start of its forward pass, what the weight
gradient needs of them from the end of the input gradient, and nothing from the end of the whole
backward pass or of the weight gradient. Weights, gradients and the optimiser's state stay, and so
do the buffers of layers that are whole for a while, see `des.costs.whole_layers`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from des.base.arithmetic import held_bytes
from des.base.lazy import lazy
from des.costs.copy_collectives import HeldParameters, shared_expert_parameters
from des.costs.memory import bytes_per_parameter, gpus_of_device, kept_bytes
from des.costs.outer_state import outer_state_bytes
from des.costs.whole_layers import whole_layers_bytes
from des.engine.result import IterationResult, Span, StageUse
from des.job.workload import Workload, total
from des.plan.plan import Plan
from des.world.topology import Topology

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


class MemoryChange(NamedTuple):
    """Activations on a GPU of a device from a time on, and the stage that changed them."""

    time_s: float
    stage: int
    stage_activation_bytes: float
    activation_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Memory of each GPU of one device of a domain; they all hold the same. [bytes]

    ``changes`` are in the order in which they happen, the first at time 0 with no activations yet.
    Several may fall on one time: what is freed comes before what is taken next.
    """

    domain: str
    device: int
    num_gpus: int
    weight_bytes: float
    gradient_bytes: float
    optimiser_bytes: float
    whole_layers_bytes: float = 0.0
    outer_state_bytes: float = 0.0
    capacity_bytes: float
    changes: tuple[MemoryChange, ...]

    @property
    def model_state_bytes(self) -> float:
        """Weights, gradients and optimisers together, and layers that are whole for a while."""
        kept = self.weight_bytes + self.gradient_bytes + self.optimiser_bytes
        return kept + self.whole_layers_bytes + self.outer_state_bytes

    @property
    def peak_activation_bytes(self) -> float:
        """Most activations at once."""
        return max(change.activation_bytes for change in self.changes)

    @property
    def peak_bytes(self) -> float:
        """Most of everything at once."""
        return self.model_state_bytes + self.peak_activation_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTimeline:
    """Memory of all devices in use, in the order of their first stages."""

    devices: tuple[DeviceMemory, ...]

    @property
    def fullest(self) -> DeviceMemory:
        """Device whose peak is the largest share of its capacity."""
        return max(self.devices, key=lambda device: device.peak_bytes / device.capacity_bytes)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per change; all bytes are those of one GPU of the device."""
        rows = [
            {
                "domain": device.domain,
                "device": device.device,
                "stage": change.stage,
                "time_s": change.time_s,
                "weight_bytes": device.weight_bytes,
                "gradient_bytes": device.gradient_bytes,
                "optimiser_bytes": device.optimiser_bytes,
                "stage_activation_bytes": change.stage_activation_bytes,
                "activation_bytes": change.activation_bytes,
                "total_bytes": device.model_state_bytes + change.activation_bytes,
                "capacity_bytes": device.capacity_bytes,
            }
            for device in self.devices
            for change in device.changes
        ]
        return pd.DataFrame(rows)


def memory_timeline(
    result: IterationResult, topology: Topology, workload: Workload, plan: Plan
) -> MemoryTimeline:
    """Follow the memory through an iteration.

    Parameters
    ----------
    result
        Result of `des.simulation.iteration.simulate` for the other arguments.

    Notes
    -----
    Peaks are those of `des.costs.memory.memory_of_orders`, which knows no times, where each
    device has one worker, and at most those where several share a device.
    """
    devices = [(use.domain, use.device) for use in result.stages]
    stages_of: dict[tuple[str, int], list[int]] = {}
    for stage, device in enumerate(devices):
        stages_of.setdefault(device, []).append(stage)
    spans_of: dict[tuple[str, int], list[Span]] = {device: [] for device in stages_of}
    for span in sorted(result.spans, key=attrgetter("start_s", "end_s")):
        spans_of[devices[span.stage]].append(span)
    return MemoryTimeline(
        devices=tuple(
            _device_memory(
                {stage: result.stages[stage] for stage in stages},
                topology,
                workload,
                plan,
                spans_of[device],
            )
            for device, stages in stages_of.items()
        )
    )


def _device_memory(
    stages: Mapping[int, StageUse],
    topology: Topology,
    workload: Workload,
    plan: Plan,
    spans: Sequence[Span],
) -> DeviceMemory:
    use = next(iter(stages.values()))
    index = topology.index_of[use.domain]
    domain, parallelism = topology.domains[index], plan.parallelism_of(index)
    num_gpus = gpus_of_device(domain, parallelism)
    runs = [(one.first_layer, one.num_layers) for one in stages.values()]
    sums_before = workload.sums_before.num_parameters
    num_parameters = sum(total(sums_before, *run) / num_gpus for run in runs)
    num_routed = shared_expert_parameters(workload, runs, parallelism) / num_gpus
    num_common = num_parameters - num_routed
    held = HeldParameters(num_common, num_routed)
    common = bytes_per_parameter(parallelism, workload.gradient_bytes)
    routed = bytes_per_parameter(parallelism, workload.gradient_bytes, of_experts=True)
    kept = {stage: kept_bytes(workload, plan.stages[stage], parallelism) for stage in stages}
    whole_bytes = {stage: whole / num_gpus for stage, (whole, _) in kept.items()}
    halved_bytes = {stage: halved / num_gpus for stage, (_, halved) in kept.items()}
    return DeviceMemory(
        domain=use.domain,
        device=use.device,
        num_gpus=num_gpus,
        weight_bytes=common.weight * num_common + routed.weight * num_routed,
        gradient_bytes=common.gradient * num_common + routed.gradient * num_routed,
        optimiser_bytes=(common.optimiser * num_common + routed.optimiser * num_routed)
        / plan.optimiser_shards,
        whole_layers_bytes=whole_layers_bytes(workload, runs, parallelism) / num_gpus,
        outer_state_bytes=outer_state_bytes(plan, held, parallelism),
        capacity_bytes=domain.gpu_memory_bytes,
        changes=tuple(_changes(spans, whole_bytes=whole_bytes, halved_bytes=halved_bytes)),
    )


def _changes(
    spans: Sequence[Span], *, whole_bytes: Mapping[int, float], halved_bytes: Mapping[int, float]
) -> Iterator[MemoryChange]:
    """Follow the passes of one device, which follow each other.

    Microbatches are counted and then multiplied, so that what has come and gone leaves nothing.
    """
    whole, halved = dict.fromkeys(whole_bytes, 0), dict.fromkeys(whole_bytes, 0)
    of_stages = dict.fromkeys(whole_bytes, 0.0)
    yield MemoryChange(0.0, next(iter(whole_bytes)), 0.0, 0.0)
    for span in spans:
        kind, stage = span.kind, span.stage
        whole[stage] += (kind == "F") - (kind in "BD")
        halved[stage] += (kind == "D") - (kind == "W")
        of_stages[stage] = held_bytes(
            whole[stage], halved[stage], whole_bytes[stage], halved_bytes[stage]
        )
        time_s = span.start_s if kind == "F" else span.end_s
        yield MemoryChange(time_s, stage, of_stages[stage], sum(of_stages.values()))
