"""A pipeline in numbers: all that a schedule may look at."""

import math
from dataclasses import dataclass
from functools import cached_property

from des.base.checks import MOST_ITEMS, require_count, require_non_negative, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """One direction between neighbouring stages: messages queue for the wire, then they fly."""

    transfer_s: float = 0.0
    latency_s: float = 0.0

    def __post_init__(self) -> None:
        require_non_negative("border", "transfer_s", self.transfer_s)
        require_non_negative("border", "latency_s", self.latency_s)


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Stages in the order of the model, their times for one microbatch, borders and memory.

    Parameters
    ----------
    device_of_stage
        Device that each stage runs on, numbered from 0; a device with several stages (chunks) does
        one thing at a time.
    forward_s, input_gradient_s, weight_gradient_s
        Time of each pass of each stage. [s]
    down, up
        Border behind each stage but the last, for activations and for gradients.
    activation_bytes
        Memory a stage keeps of a microbatch from the start of ``F`` to the end of ``B`` or ``D``.
    weight_input_bytes
        Memory it keeps of it from the end of ``D`` to the end of ``W``.
    memory_bytes
        Memory of each device for that; infinite where it does not matter.
    backward_s
        Time of a whole backward pass of each stage, where messages hide in it better than in its
        halves one by one; none: as long as both. [s]
    """

    num_microbatches: int
    device_of_stage: tuple[int, ...]
    forward_s: tuple[float, ...]
    input_gradient_s: tuple[float, ...]
    weight_gradient_s: tuple[float, ...]
    down: tuple[Border, ...]
    up: tuple[Border, ...]
    activation_bytes: tuple[float, ...]
    weight_input_bytes: tuple[float, ...]
    memory_bytes: tuple[float, ...]
    backward_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_count("pipeline", "num_microbatches", self.num_microbatches, MOST_ITEMS)
        require_count("pipeline", "num_stages", self.num_stages, MOST_ITEMS)
        if sorted(set(self.device_of_stage)) != list(range(self.num_devices)):
            raise ValueError(
                "pipeline: device_of_stage must number the devices from 0 without a gap, "
                f"got {self.device_of_stage}"
            )
        lengths = {"down": self.num_stages - 1, "up": self.num_stages - 1}
        lengths |= dict.fromkeys(_PER_STAGE, self.num_stages)
        lengths["memory_bytes"] = self.num_devices
        lengths["backward_s"] = self.num_stages if self.backward_s else 0
        for field, length in lengths.items():
            if len(getattr(self, field)) != length:
                raise ValueError(
                    f"pipeline: {field} must hold {length} items, got {len(getattr(self, field))}"
                )
        for field in (*_PER_STAGE, "backward_s"):
            for value in getattr(self, field):
                require_non_negative("pipeline", field, value)
        for work_s in self.work_s:
            require_positive("pipeline", "time of a stage", work_s)
        for room in self.memory_bytes:
            if not room > 0:
                raise ValueError(f"pipeline: memory_bytes must be positive, got {room!r}")

    @classmethod
    def uniform(
        cls,
        num_stages: int,
        num_microbatches: int,
        *,
        forward_s: float = 1.0,
        input_gradient_s: float = 1.0,
        weight_gradient_s: float = 1.0,
        border: Border | None = None,
        num_devices: int | None = None,
    ) -> "Pipeline":
        """Equal stages with memory without limit; stage ``i`` is on device ``i % num_devices``."""
        num_devices = num_stages if num_devices is None else num_devices
        borders = (border or Border(),) * (num_stages - 1)
        return cls(
            num_microbatches=num_microbatches,
            device_of_stage=tuple(stage % num_devices for stage in range(num_stages)),
            forward_s=(forward_s,) * num_stages,
            input_gradient_s=(input_gradient_s,) * num_stages,
            weight_gradient_s=(weight_gradient_s,) * num_stages,
            down=borders,
            up=borders,
            activation_bytes=(1.0,) * num_stages,
            weight_input_bytes=(1.0,) * num_stages,
            memory_bytes=(math.inf,) * num_devices,
        )

    @property
    def num_stages(self) -> int:
        """Number of stages, chunks counted one by one."""
        return len(self.device_of_stage)

    @cached_property
    def num_devices(self) -> int:
        """Number of devices, p."""
        return len(set(self.device_of_stage))

    @cached_property
    def work_s(self) -> tuple[float, ...]:
        """Time of all passes of each stage over one microbatch. [s]"""
        return tuple(
            sum(times)
            for times in zip(
                self.forward_s, self.input_gradient_s, self.weight_gradient_s, strict=True
            )
        )

    def duration_s(self, kind: str, stage: int) -> float:
        """Time of one pass of a stage. [s]"""
        if kind == "F":
            return self.forward_s[stage]
        if kind == "D":
            return self.input_gradient_s[stage]
        if kind == "W":
            return self.weight_gradient_s[stage]
        if self.backward_s:
            return self.backward_s[stage]
        return self.input_gradient_s[stage] + self.weight_gradient_s[stage]


_PER_STAGE = (
    "forward_s",
    "input_gradient_s",
    "weight_gradient_s",
    "activation_bytes",
    "weight_input_bytes",
)
