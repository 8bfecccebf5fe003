"""The runs of CrossPipe's tables, made again in the simulator: world, model and schedules.

Eight pipeline stages are split evenly over data centres in a row. Each stage is a domain here, of a
GPU of 1 FLOP/s, so that a pass of n FLOPs takes n seconds; links inside a data centre
cost nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from des import (
    NO_CORRECTIONS,
    Layer,
    Placement,
    Plan,
    Topology,
    Transport,
    Workload,
    simulate,
)
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import pipeline_of
from des.schedules import Border, Orders, Pipeline
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.deep_1f1b import deep_1f1b
from des.schedules.exact import exact
from des.schedules.flush import one_f_one_b
from des.schedules.greedy import greedy
from des.schedules.interleaved import wave_devices
from des.schedules.zero_bubble import zb_h1
from scenarios.reproduce.cases import (
    CaseForm,
    Count,
    NonNegativeNumber,
    PositiveNumber,
    without_null,
)
from scenarios.reproduce.unit_world import unit_layer, unit_topology, unit_workload

NUM_DEVICES = 8
FORWARD_S = 0.038
INPUT_GRADIENT_S = 0.0465
WEIGHT_GRADIENT_S = 0.0205
"""The forward time is published. The others solve the row without delay for m = 16, p = 8: 1F1B
takes (m + p - 1) (F + D + W) = 16 * 0.151 s, ZB-H1 m (F + D + W) + (p - 1) (F + D - W) = 16 *
0.133 s."""

ACTIVATION_BYTES = 34.0
WEIGHT_INPUT_BYTES = 32.0
"""Kept of a microbatch on one device until D, and of that until W, in units of sequence length x
microbatch x hidden size: P. Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, table 1,
without the attention scores, which fused attention does not keep. CrossPipe does not say."""

OVERLAPPED = Transport()
BLOCKING = Transport(endpoints="blocking")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Cost of a message between data centres, and the number of messages."""

    latency_s: float
    transfer_s: float
    num_domains: int

    @property
    def is_free(self) -> bool:
        """Whether no message costs anything."""
        return self.num_domains == 1 or self.latency_s + self.transfer_s == 0.0


class DelayRow(CaseForm):
    """A row of the tables: a delay in units of the forward time, and the measured columns."""

    latency_over_forward: NonNegativeNumber
    transfer_over_forward: NonNegativeNumber
    num_domains: Count
    seconds_per_microbatch: Annotated[dict[str, PositiveNumber | None], Field(min_length=1)]

    @model_validator(mode="after")
    def _known_columns_and_even_parts(self) -> Self:
        for name in self.seconds_per_microbatch:
            if name not in COLUMNS:
                raise ValueError(
                    f"seconds_per_microbatch must have keys of {', '.join(COLUMNS)}, got {name!r}"
                )
        if NUM_DEVICES % self.num_domains:
            raise ValueError(
                f"num_domains must divide the {NUM_DEVICES} stages, got {self.num_domains}"
            )
        return self

    @property
    def published(self) -> dict[str, float]:
        """Published seconds per microbatch by column, in the order of the table."""
        figures = without_null(self.seconds_per_microbatch)
        return {name: figures[name] for name in COLUMNS if name in figures}

    @property
    def delay(self) -> Delay:
        """Cost of a message between data centres."""
        return Delay(
            latency_s=self.latency_over_forward * FORWARD_S,
            transfer_s=self.transfer_over_forward * FORWARD_S,
            num_domains=self.num_domains,
        )

    def __str__(self) -> str:
        return (
            f"latency {self.latency_over_forward:g} F, transfer {self.transfer_over_forward:g} F, "
            f"{self.num_domains} data centres"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleColumn:
    """A column of the tables: a schedule, its microbatches and memory.

    ``scale`` multiplies the 16 microbatches and the activation memory of 1F1B. In a ``wave``, a
    device has a stage of the way down and one of the way up. Where ``searched``, the exact search
    continues from the orders. Schedules ``from_elsewhere`` were not made by CrossPipe.
    """

    orders: Callable[[Pipeline], Orders] = greedy
    scale: int = 1
    searched: bool = False
    wave: bool = False
    from_elsewhere: bool = False

    @property
    def num_microbatches(self) -> int:
        """Microbatches of an iteration."""
        return 16 * self.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limits of each exact search; see `des.schedules.exact`."""

    work: float
    seconds: float

    def __post_init__(self) -> None:
        for field, value in (("exact_work", self.work), ("exact_seconds", self.seconds)):
            if not value >= 0.0:  # NaN fails too
                raise ValueError(f"{field}: must be at least 0, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Orders of a run, and for an exact search what no orders can go below. [s]"""

    orders: Orders
    lower_bound_s: float | None = None


def _of_counts(schedule: Callable[[int, int], Orders]) -> Callable[[Pipeline], Orders]:
    return lambda pipeline: schedule(pipeline.num_stages, pipeline.num_microbatches)


def _zb_v(pipeline: Pipeline) -> Orders:
    """Zero bubble on the V of ZB-V; made, as that is, for messages that cost nothing."""
    borders = (Border(),) * (pipeline.num_stages - 1)
    return automatic_zero_bubble(replace(pipeline, down=borders, up=borders), "makespan_s")


COLUMNS = {
    "1f1b": ScheduleColumn(orders=_of_counts(one_f_one_b), from_elsewhere=True),
    "zb_h1": ScheduleColumn(orders=_of_counts(zb_h1), from_elsewhere=True),
    "zb_v": ScheduleColumn(orders=_zb_v, wave=True, from_elsewhere=True),
    "greedy_1x": ScheduleColumn(),
    "optimal_ud_1x": ScheduleColumn(searched=True),
    "optimal_wave_1x": ScheduleColumn(searched=True, wave=True),
    "greedy_2x": ScheduleColumn(scale=2),
    "optimal_ud_2x": ScheduleColumn(searched=True, scale=2),
    "optimal_wave_2x": ScheduleColumn(searched=True, scale=2, wave=True),
}
"""Columns of the published tables."""

OUR_COLUMNS = {"deep_1f1b_2x": ScheduleColumn(orders=deep_1f1b, scale=2)}
"""Runs that were not published: 1F1B with more forwards at the start. (With the memory of 1F1B
there is no room for more, so it is 1F1B.) They are made for rows with figures of that memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossPipeRun:
    """A cell of the tables, ready to be simulated."""

    topology: Topology
    workload: Workload
    plan: Plan

    @classmethod
    def of(
        cls, delay: Delay, column: ScheduleColumn, weight_input_bytes: float = WEIGHT_INPUT_BYTES
    ) -> "CrossPipeRun":
        """Set up the world, the model and the placement of a cell.

        The two stages of a wave that meet on the last device are one: it runs both in a row.
        """
        devices = wave_devices(NUM_DEVICES, 2) if column.wave else tuple(range(NUM_DEVICES))
        runs = [(device, len(list(run))) for device, run in groupby(devices)]
        part = NUM_DEVICES / len(devices)
        return cls(
            topology=_world(delay, memory_bytes=column.scale * NUM_DEVICES * ACTIVATION_BYTES),
            workload=unit_workload(
                "CrossPipe",
                [_layer(part * length, weight_input_bytes) for _, length in runs],
                column.num_microbatches,
            ),
            plan=Plan(placement=Placement(domain_of_layer=tuple(device for device, _ in runs))),
        )

    @property
    def pipeline(self) -> Pipeline:
        """Pipeline that schedules are made for: messages overlap with computing."""
        stages = bound_stages(self.topology, self.plan)
        share = self.workload.num_microbatches
        return pipeline_of(self.topology, self.workload, stages, NO_CORRECTIONS, share)

    def seconds_per_microbatch(self, orders: Orders, transport: Transport = OVERLAPPED) -> float:
        """Simulate an iteration: the makespan over the number of microbatches. [s]"""
        topology = replace(self.topology, transport=transport)
        result = simulate(topology, self.workload, self.plan, orders=orders)
        return result.makespan_s / self.workload.num_microbatches


def make_orders(run: CrossPipeRun, column: ScheduleColumn, effort: Effort) -> Made:
    """Schedule a run, in its memory."""
    pipeline = run.pipeline
    orders = column.orders(pipeline)
    if not column.searched:
        return Made(orders=orders)
    found = exact(pipeline, starts=[orders], time_limit_s=effort.seconds, work_limit=effort.work)
    return Made(orders=found.orders, lower_bound_s=found.lower_bound_s)


def _layer(part: float, weight_input_bytes: float) -> Layer:
    """A part of what one device does."""
    passes_s = (part * FORWARD_S, part * INPUT_GRADIENT_S, part * WEIGHT_GRADIENT_S)
    return unit_layer(*passes_s, part * ACTIVATION_BYTES, part * weight_input_bytes)


def _world(delay: Delay, memory_bytes: float) -> Topology:
    """Devices in a row, each joined to the next."""
    centre = [device * delay.num_domains // NUM_DEVICES for device in range(NUM_DEVICES)]
    ways: dict[tuple[int, int], tuple[float, float]] = {}
    for here, there in pairwise(range(NUM_DEVICES)):
        crosses = centre[here] != centre[there]
        ways[here, there] = (delay.transfer_s, delay.latency_s) if crosses else (0.0, 0.0)
        ways[there, here] = ways[here, there]
    return unit_topology(NUM_DEVICES, ways, memory_bytes=memory_bytes)
