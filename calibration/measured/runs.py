"""Measured iterations of pipelines on one cluster: files of them, and what the simulator says."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from calibration.measured.run_sizes import FROZEN, Count, MeasuredRun, Positive, RunSizes
from des.base.checks import prefixed_errors
from des.base.strict_forms import StrictForm, read_json_form
from des.compiled.simulate import simulate_compiled
from des.devices.gpu_kinds import gpu_kind_named
from des.job.architecture import Architecture
from des.job.models import build_workload
from des.job.transformer import AttentionKernel, GradientPrecision
from des.job.workload import Workload
from des.plan.gradient_exchange import GradientExchange
from des.plan.parallelism import Parallelism
from des.plan.placement import Placement
from des.plan.plan import Plan
from des.world.domain import Domain
from des.world.kernel_figures import FITTED_KERNELS, KernelFigures
from des.world.layer_profiles import LayerProfile
from des.world.nodes import Nodes
from des.world.topology import Topology
from des.world.transport import Transport


class RunCluster(StrictForm):
    """Hardware that all runs of a file share, and the model apart from its sizes.

    Bandwidths are those of the hardware; efficiencies belong to `LayerTimeFigures`. ``endpoints``
    is whether stages wait for their messages, see `des.world.transport.Transport`.
    """

    model_config = FROZEN

    gpu: str
    gpus_per_node: Count
    intra_bandwidth_bytes_per_s: Positive
    nics_per_node: Count
    nic_bandwidth_bytes_per_s: Positive
    vocabulary_size: Count
    gradient_precision: GradientPrecision = "bf16"
    endpoints: Literal["overlapped", "one_in_flight", "blocking"] = "overlapped"


class Setup(RunCluster):
    """Cluster, and how activations are kept, of runs that share that too.

    ``attention`` is its kernel under full recomputation; the tables are from before fused ones.
    """

    recomputation: str
    attention: AttentionKernel = "plain"
    sequence_parallel: bool = False
    published_error: Positive | None = None
    target_error: Positive | None = None
    recorded_error: Positive | None = None


class _File(StrictForm):
    source: str
    units: str | None = None
    setup: Setup | None = None
    rows: Annotated[tuple[MeasuredRun, ...], Field(min_length=1, strict=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """Runs of one table with what they share, and where they are from."""

    name: str
    source: str
    setup: Setup
    runs: tuple[MeasuredRun, ...]


def read_runs(path: Path, setup: Setup | None = None) -> RunTable:
    """Read a table of measured runs; ``setup`` is that of files that have none.

    Raises
    ------
    ValueError
        If the file is not JSON, a field is missing or wrong, or a run is impossible; naming file,
        row, field, what is allowed and what came.
    """
    content = read_json_form(path, _File)
    setup = content.setup or setup
    if setup is None:
        known = ", ".join(Setup.model_fields)
        raise ValueError(f"{path}: setup must be given ({known}), got none")
    for row, run in enumerate(content.rows):
        with prefixed_errors(f"{path}: rows[{row}]."):
            run.check()
    gpu_kind_named(f"of {path}", setup.gpu)
    return RunTable(name=path.stem, source=content.source, setup=setup, runs=content.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTimeFigures:
    """All that is fitted: kernels' figures, and the latency of a step between any two GPUs."""

    kernels: KernelFigures
    step_latency_s: float


FITTED_FIGURES = LayerTimeFigures(kernels=FITTED_KERNELS, step_latency_s=2.19e-5)
"""All fitted constants, the same for every table. The latency of a step of a collective between two
GPUs has launch and waiting in it.
"""


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """A run as a world, a job and a plan.

    The cluster is one domain of nodes. Gradients are summed up after the last backward pass, as
    Megatron-DeepSpeed does without buckets. Layers take the times of a profile if there is one.
    """

    run: RunSizes
    setup: Setup
    figures: LayerTimeFigures
    profile: LayerProfile | None = None

    @cached_property
    def topology(self) -> Topology:
        """The cluster, with as many GPUs as the run uses."""
        setup, run = self.setup, self.run
        model = gpu_kind_named("of a measured run", setup.gpu)
        nodes = Nodes(
            gpus_per_node=setup.gpus_per_node,
            nics_per_node=setup.nics_per_node,
            nic_bandwidth_bytes_per_s=setup.nic_bandwidth_bytes_per_s,
            nic_latency_s=self.figures.step_latency_s,
            tensor_across_nodes=True,
        )
        domain = Domain(
            name="cluster",
            num_gpus=run.num_gpus,
            gpu_peak_flops_per_s=model.peak_flops_per_s,
            gpu_memory_bytes=model.memory_bytes,
            gpu_memory_bandwidth_bytes_per_s=model.memory_bandwidth_bytes_per_s,
            attainable_fraction=1.0,
            intra_bandwidth_bytes_per_s=setup.intra_bandwidth_bytes_per_s,
            intra_latency_s=self.figures.step_latency_s,
            kernels=self.figures.kernels,
            profile=self.profile,
        )
        if run.num_gpus > setup.gpus_per_node:
            domain = replace(domain, nodes=nodes)
        return Topology.of([domain], [], transport=Transport(endpoints=setup.endpoints))

    @cached_property
    def architecture(self) -> Architecture:
        """The model."""
        return self.run.architecture(self.setup.vocabulary_size)

    @cached_property
    def workload(self) -> Workload:
        """The job; its microbatches are those of all replicas together."""
        run = self.run
        together = run.microbatch_size * run.data
        return build_workload(
            self.architecture,
            num_microbatches=run.global_batch // together,
            microbatch_size=together,
            sequence_length=run.sequence_length,
            recomputation=self.setup.recomputation,
            attention=self.setup.attention if self.setup.recomputation == "full" else None,
            gradient_precision=self.setup.gradient_precision,
        )

    @cached_property
    def plan(self) -> Plan:
        """The way the work was shared, under 1F1B, interleaved where devices have chunks."""
        run = self.run
        parallelism = Parallelism(
            tensor=run.tensor,
            data=run.data,
            pipeline=run.pipeline,
            chunks=run.interleaving,
            sequence_parallel=self.setup.sequence_parallel,
            expert=run.expert,
        )
        return Plan(
            placement=Placement(domain_of_layer=(0,) * run.num_layers),
            schedule="1f1b" if run.interleaving == 1 else "interleaved_1f1b",
            parallelism=(parallelism,),
            exchange=GradientExchange(overlapped=False),
        )

    @cached_property
    def predicted_s(self) -> float:
        """Iteration time in the simulator. [s]"""
        return simulate_compiled(self.topology, self.workload, self.plan).makespan_s


@dataclass(frozen=True, kw_only=True)
class PredictedRun(SimulatedRun):
    """A measured run in the simulator."""

    run: MeasuredRun

    @property
    def relative_error(self) -> float:
        """Signed error; above 0 the simulator is too slow."""
        return self.predicted_s / self.run.measured_iteration_s - 1.0
