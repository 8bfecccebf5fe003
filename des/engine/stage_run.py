"""Stages at work while an iteration runs: devices, durations, and where outputs go."""

from collections.abc import Sequence

from des.clock import Message
from des.costs.stage_times import stage_times_s
from des.engine.network import Send
from des.job.workload import Workload
from des.plan.corrections import Corrections
from des.plan.placement import Stage
from des.plan.plan import Plan
from des.schedules import Border, Pass
from des.world.topology import Topology


class Device:
    """GPUs that work as one: a worker that comes later waits."""

    __slots__ = ("free_at_s", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.free_at_s = 0.0

    def compute(self, duration_s: float, *, ready_s: float) -> tuple[float, float]:
        """Compute when all earlier requests are done; returns start and end. [s]

        A first-come-first-served queue needs no process, see `des.engine.wire.Wire`.
        """
        start_s = max(ready_s, self.free_at_s)
        self.free_at_s = start_s + duration_s
        return start_s, self.free_at_s


class LocalWire:
    """One direction between two devices of a domain: first come, first served, or no queue."""

    __slots__ = ("_free_at_s", "_has_queue")

    def __init__(self, *, has_queue: bool) -> None:
        self._has_queue = has_queue
        self._free_at_s = 0.0

    def carry(self, border: Border, ready_s: float) -> float:
        """Send a message that is ready; returns when it arrives. [s]"""
        end_s = max(ready_s, self._free_at_s) + border.transfer_s
        if self._has_queue:
            self._free_at_s = end_s
        return end_s + border.latency_s


class LocalWires:
    """Wires inside the domains, for activations and gradients alike."""

    def __init__(self, topology: Topology) -> None:
        self._has_queue = topology.transport.sharing != "none"
        self._wires: dict[tuple[int, int], LocalWire] = {}

    def way(self, sender: int, receiver: int, border: Border) -> Send:
        """Return what passes messages on between two devices, by their numbers."""
        if sender == receiver:
            return Message.happen_at
        wire = self._wires.setdefault((sender, receiver), LocalWire(has_queue=self._has_queue))
        return lambda message, ready_s: message.happen_at(wire.carry(border, ready_s))


class PassRun:
    """One kind of pass of a stage: how long it takes, what it waits for and what it sends on.

    ``inputs`` and ``outputs`` hold one message per microbatch, or none.
    """

    __slots__ = ("duration_s", "inputs", "outputs", "send")

    def __init__(self, duration_s: float) -> None:
        self.duration_s = duration_s
        self.inputs: Sequence[Message] = ()
        self.outputs: Sequence[Message] = ()
        self.send: Send | None = None


class StageRun:
    """One stage at work."""

    __slots__ = ("busy_s", "device", "number", "passes", "stage")

    def __init__(
        self, number: int, stage: Stage, duration_s: dict[Pass, float], device: Device
    ) -> None:
        self.number = number
        self.stage = stage
        self.device = device
        self.passes = {kind: PassRun(each_s) for kind, each_s in duration_s.items()}
        self.busy_s = 0.0


def make_stage_runs(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
) -> list[StageRun]:
    """All stages of all replicas, not joined yet."""
    stages, numbers = plan.stages, plan.device_of_stage
    devices = [Device(number) for number in range(max(numbers) + 1)]
    times_s = stage_times_s(topology, workload, stages, corrections, plan.parallelism)
    return [
        StageRun(index, stage, times, devices[number])
        for index, (stage, times, number) in enumerate(zip(stages, times_s, numbers, strict=True))
    ]
