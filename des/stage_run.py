"""Stages at work while an iteration runs: devices, durations, and where outputs go."""

from itertools import pairwise

from des.clock import Message
from des.corrections import Corrections
from des.placement import Stage
from des.plan import Plan, device_numbers, plan_stages
from des.schedules import Border, Pass
from des.stage_times import local_message_s, stage_times_s
from des.topology import Topology
from des.workload import Workload


class Device:
    """GPUs that work as one: a worker that comes later waits."""

    __slots__ = ("free_at_s", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.free_at_s = 0.0


class LocalWire:
    """One direction between two devices of a domain, first come, first served."""

    __slots__ = ("_border", "_free_at_s")

    def __init__(self, border: Border) -> None:
        self._border = border
        self._free_at_s = 0.0

    def carry(self, ready_s: float) -> float:
        """Send a message that is ready; returns when it arrives. [s]"""
        self._free_at_s = max(ready_s, self._free_at_s) + self._border.transfer_s
        return self._free_at_s + self._border.latency_s


class StageRun:
    """One stage at work: its device and durations, expected inputs and where outputs go.

    An output for another domain has a route, one for another device of the domain a local wire, one
    for the same device neither.
    """

    __slots__ = (
        "busy_s", "device", "duration_s", "inputs", "local", "receiver", "routes", "stage",
    )  # fmt: skip

    def __init__(self, stage: Stage, duration_s: dict[Pass, float], device: Device) -> None:
        self.stage = stage
        self.duration_s = duration_s
        self.device = device
        self.inputs: dict[Pass, list[Message]] = {"F": [], "B": [], "D": [], "W": []}
        self.receiver: dict[Pass, StageRun] = {}
        self.routes: dict[Pass, tuple[int, ...]] = {}
        self.local: dict[Pass, LocalWire] = {}
        self.busy_s = 0.0


def make_stage_runs(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
) -> list[StageRun]:
    """All stages of all replicas, with local wires between devices of a domain."""
    stages = plan_stages(plan)
    numbers = device_numbers(stages)
    devices = [Device(number) for number in range(max(numbers) + 1)]
    times_s = stage_times_s(topology, workload, stages, corrections, plan.parallelism)
    runs = [
        StageRun(stage, times, devices[number])
        for stage, times, number in zip(stages, times_s, numbers, strict=True)
    ]
    if plan.parallelism:
        _lay_local_wires(runs, topology, workload, plan)
    return runs


def _lay_local_wires(
    runs: list[StageRun], topology: Topology, workload: Workload, plan: Plan
) -> None:
    """Join neighbouring stages of one domain; stages of the same two devices share the wires."""
    wires: dict[tuple[int, int], LocalWire] = {}
    for upper, lower in pairwise(runs):
        domain = upper.stage.domain
        if domain != lower.stage.domain or upper.device is lower.device:
            continue
        border = local_message_s(workload, topology.domains[domain], plan.parallelism[domain])
        down = (upper.device.number, lower.device.number)
        upper.local["F"] = wires.setdefault(down, LocalWire(border))
        lower.local["B"] = lower.local["D"] = wires.setdefault(down[::-1], LocalWire(border))
