"""Throughput and memory of Llama 3 405B in TorchTitan: FSDP, tensor and pipeline parallelism.

With a pipeline TorchTitan keeps weights gathered between microbatches, and sums gradients up after
the last one: of the levels of sharding that is the optimiser's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from calibration.measured.runs import FITTED_FIGURES
from des import (
    Domain,
    GradientExchange,
    IterationResult,
    Nodes,
    Parallelism,
    Placement,
    Plan,
    Topology,
    build_workload,
)
from des.compiled.simulate import simulate_compiled
from des.devices.gpu_kinds import gpu_kind_named
from des.job.transformer import Recomputation
from des.plan.parallelism import Sharding
from scenarios.reproduce.cases import CaseForm, Count, PositiveNumber, read_measured
from scenarios.reproduce.measured_tables import ErrorTarget, MeasuredCell, MeasuredTable

THROUGHPUT = "tokens_per_gpu_s"
MEMORY = "peak_gib"
GIB = 2.0**30


class ShardedSetup(BaseModel):
    """Cluster and plan of a table; ``not_comparable_for`` says what ours lacks."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    gpu: str
    num_gpus: Count
    gpus_per_node: Count
    intra_bandwidth_bytes_per_s: PositiveNumber
    nics_per_node: Count
    nic_bandwidth_bytes_per_s: PositiveNumber
    tensor: Count
    data: Count
    pipeline: Count
    sharding: Sharding
    global_batch: Count
    num_microbatches: Count
    sequence_length: Count
    recomputation: Recomputation
    chunks: Mapping[str, Count]
    not_comparable_for: str


class ShardedRow(CaseForm):
    """A run: tokens per second and GPU, and GiB of the fullest GPU."""

    model: str
    schedule: str
    tokens_per_s_per_gpu: PositiveNumber | None = None
    memory_gib: PositiveNumber | None = None


def predict_table(path: Path, shipped: Path) -> MeasuredTable:
    """Read a table of runs and predict it; a file without setup takes the shipped one's.

    Raises
    ------
    ValueError
        If a file is wrong; naming file, row, field, what is allowed and what came.
    """
    rows, setup = read_measured(path, shipped, ShardedRow, ShardedSetup)
    for number, row in enumerate(rows):
        if row.schedule not in setup.chunks:
            raise ValueError(
                f"{path}: rows[{number}].schedule must be one of {', '.join(setup.chunks)}; "
                f"got {row.schedule!r}"
            )
    return MeasuredTable(
        name=path.stem,
        cells=tuple(_cells(rows, setup)),
        targets=(
            ErrorTarget(quantity=THROUGHPUT, noun="throughputs", target=None),
            ErrorTarget(quantity=MEMORY, noun="peaks of memory", target=None),
        ),
        notes=(f"{path.stem}: not comparable, for {setup.not_comparable_for}.",),
    )


def _cells(rows: tuple[ShardedRow, ...], setup: ShardedSetup) -> Iterator[MeasuredCell]:
    for row in rows:
        found = PredictedShardedRun(row=row, setup=setup)
        for quantity, measured, predicted in (
            (THROUGHPUT, row.tokens_per_s_per_gpu, found.tokens_per_gpu_s),
            (MEMORY, row.memory_gib, found.peak_gib),
        ):
            if measured is not None:
                yield MeasuredCell(
                    run=f"{row.model} {row.schedule}",
                    quantity=quantity,
                    measured=measured,
                    predicted=predicted,
                    columns={"model": row.model, "schedule": row.schedule},
                    job=(row.model,) if quantity == THROUGHPUT else None,
                )


@dataclass(frozen=True, kw_only=True)
class PredictedShardedRun:
    """A run on one domain of nodes, in 16-bit numbers."""

    row: ShardedRow
    setup: ShardedSetup

    @cached_property
    def topology(self) -> Topology:
        """The cluster, with kernels' figures as fitted on A100."""
        setup = self.setup
        model = gpu_kind_named("of a measured run", setup.gpu)
        domain = Domain(
            name="cluster",
            num_gpus=setup.num_gpus,
            gpu_peak_flops_per_s=model.peak_flops_per_s,
            gpu_memory_bytes=model.memory_bytes,
            gpu_memory_bandwidth_bytes_per_s=model.memory_bandwidth_bytes_per_s,
            attainable_fraction=1.0,
            intra_bandwidth_bytes_per_s=setup.intra_bandwidth_bytes_per_s,
            intra_latency_s=FITTED_FIGURES.step_latency_s,
            kernels=FITTED_FIGURES.kernels,
            nodes=Nodes(
                gpus_per_node=setup.gpus_per_node,
                nics_per_node=setup.nics_per_node,
                nic_bandwidth_bytes_per_s=setup.nic_bandwidth_bytes_per_s,
                nic_latency_s=FITTED_FIGURES.step_latency_s,
            ),
        )
        return Topology.of([domain], [])

    @cached_property
    def result(self) -> IterationResult:
        """One iteration in the simulator."""
        setup, schedule = self.setup, self.row.schedule
        workload = build_workload(
            self.row.model,
            num_microbatches=setup.num_microbatches,
            microbatch_size=setup.global_batch // setup.num_microbatches,
            sequence_length=setup.sequence_length,
            recomputation=setup.recomputation,
        )
        shared = Parallelism(
            tensor=setup.tensor,
            data=setup.data,
            pipeline=setup.pipeline,
            sharding=setup.sharding,
            chunks=setup.chunks[schedule],
        )
        plan = Plan(
            placement=Placement(domain_of_layer=(0,) * workload.num_layers),
            schedule=schedule,
            parallelism=(shared,),
            exchange=GradientExchange(overlapped=True),
        )
        return simulate_compiled(self.topology, workload, plan)

    @property
    def tokens_per_gpu_s(self) -> float:
        """Tokens per GPU and second."""
        num_tokens = self.setup.global_batch * self.setup.sequence_length
        return num_tokens / self.setup.num_gpus / self.result.makespan_s

    @property
    def peak_gib(self) -> float:
        """Model state and activations of the fullest GPU. [GiB]"""
        (memory,) = self.result.memory
        return memory.required_bytes / self.setup.num_gpus / GIB
