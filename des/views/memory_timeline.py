"""Memory of every GPU over one simulated iteration: model state, and activations that come and go.

A stage holds the activations of a microbatch from the start of its forward pass, what the weight
gradient needs of them from the end of the input gradient, and nothing from the end of the whole
backward pass or of the weight gradient. Weights, gradients and the optimiser's state stay, and so
do the buffers of layers that are whole for a while, see `des.costs.whole_layers`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from des.base.arithmetic import held_bytes
from des.engine.result import IterationResult, Span, columns_of
from des.program.program import Program, StageEntry


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

    def columns(self) -> dict[str, list[Any]]:
        """Return one row per change, as columns; all bytes are those of one GPU of the device."""
        pairs = [(device, change) for device in self.devices for change in device.changes]
        devices, changes = [one for one, _ in pairs], [one for _, one in pairs]
        return {
            **columns_of(devices, ("domain", "device")),
            **columns_of(changes, ("stage", "time_s")),
            **columns_of(devices, ("weight_bytes", "gradient_bytes", "optimiser_bytes")),
            **columns_of(changes, ("stage_activation_bytes", "activation_bytes")),
            "total_bytes": [one.model_state_bytes + two.activation_bytes for one, two in pairs],
            **columns_of(devices, ("capacity_bytes",)),
        }


def memory_timeline(program: Program, result: IterationResult) -> MemoryTimeline:
    """Follow the memory through an iteration.

    Parameters
    ----------
    result
        Result of a run of the program.

    Notes
    -----
    Peaks are those of `des.costs.memory.memory_of_peaks`, which knows no times, where each device
    has one worker, and at most those where several share a device.
    """
    stages_of: dict[tuple[str, int], dict[int, StageEntry]] = {}
    for stage, entry in enumerate(program.stages):
        stages_of.setdefault((entry.domain, entry.domain_device), {})[stage] = entry
    spans_of: dict[tuple[str, int], list[Span]] = {device: [] for device in stages_of}
    for span in sorted(result.spans, key=attrgetter("start_s", "end_s")):
        entry = program.stages[span.stage]
        spans_of[entry.domain, entry.domain_device].append(span)
    return MemoryTimeline(
        devices=tuple(
            DeviceMemory(**gpu._asdict(), changes=tuple(_changes(stages, spans_of[at])))
            for gpu, (at, stages) in zip(program.devices, stages_of.items(), strict=True)
        )
    )


def _changes(stages: Mapping[int, StageEntry], spans: Sequence[Span]) -> Iterator[MemoryChange]:
    """Follow the passes of one device, which follow each other.

    Microbatches are counted and then multiplied, so that what has come and gone leaves nothing.
    """
    whole, halved = dict.fromkeys(stages, 0), dict.fromkeys(stages, 0)
    of_stages = dict.fromkeys(stages, 0.0)
    yield MemoryChange(0.0, next(iter(stages)), 0.0, 0.0)
    for span in spans:
        kind, stage = span.kind, span.stage
        whole[stage] += (kind == "F") - (kind in "BD")
        halved[stage] += (kind == "D") - (kind == "W")
        kept = stages[stage].kept_bytes
        of_stages[stage] = held_bytes(whole[stage], halved[stage], *kept)
        time_s = span.start_s if kind == "F" else span.end_s
        yield MemoryChange(time_s, stage, of_stages[stage], sum(of_stages.values()))
