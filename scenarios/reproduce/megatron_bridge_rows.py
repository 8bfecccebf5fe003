"""Rows of Megatron-Bridge's performance summary, and what the simulator predicts of them.

The world of a row is its system, the job its model, precision and batch, the plan its degrees.
Assumed, as no row says it: gradients in BF16, a sharded optimiser, sums of gradients that hide
behind the backward pass, no recomputation, no layers that predict further tokens, experts whole on
a GPU (``expert_tensor_parallel_size`` 1 in Megatron-Bridge's recipes of DeepSeek and Qwen). CUDA
graphs and hidden all-to-alls are those of the recipes, release by release [1]_.

References
----------
.. [1] NVIDIA, Megatron-Bridge v0.2.0 to v0.6.0 (releases 25.11 to 26.08), ``scripts/performance``
   and ``perf_recipes``: ``cuda_graph_impl``, ``cuda_graph_scope``, ``moe_a2a_overlap``.
.. [2] X. Yao et al., "Optimizing DeepSeek-V3 training performance on NVIDIA GB200 NVL72", NVIDIA,
   Megatron-LM, ``docs/discussions``, 2025, section 1: 2,672 TFLOP/s of MXFP8 products.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from calibration.measured.runs import FITTED_FIGURES
from des import Domain, GradientExchange, Parallelism, Placement, Plan, Topology, build_workload
from des.base.checks import require_one_of
from des.base.strict_forms import form_errors
from des.base.text_files import read_text
from des.compiled.simulate import simulate_compiled
from des.devices.gpu_kinds import gpu_kind_named
from des.job.models import architecture_named
from des.job.precision import Precision
from des.world.kernel_figures import FITTED_KERNELS, GraphScope, KernelFigures
from des.world.nodes import Nodes

H100_MATMUL_EFFICIENCY = 0.75
"""The one fitted constant: share of the peak that matrix products reach, for which the errors of
the two configurations of Llama 3 on H100 (70B on 64 GPUs, 405B on 1,024) cancel out.
"""

GB200_MATMUL_EFFICIENCY = 2672.0 / 5000.0
"""Share of the peak that matrix products reach on GB200, as measured by its maker [2]_."""

MODELS = MappingProxyType(
    {
        "LLAMA3_8B": "llama3_8b",
        "LLAMA3_70B": "llama3_70b",
        "LLAMA3.1_405B": "llama3_405b",
        "DeepSeekV3": "deepseek_v3",
        "Qwen3_30B_a3B": "qwen3_30b_a3b",
        "Qwen3_235B_a22B": "qwen3_235b_a22b",
    }
)
"""Presets of models, by their names in the rows up to a bracket; others have none."""

PRECISIONS: MappingProxyType[str, Precision] = MappingProxyType(
    {"BF16": "bf16", "FP8": "fp8", "FP8-CS": "fp8", "MXFP8": "mxfp8", "NVFP4": "nvfp4"}
)
"""Precisions by their names in the rows; CS has a scale for each tensor."""


class System(NamedTuple):
    """GPUs of a system, those that NVLink joins, rates of a GPU one way [bytes/s], efficiency."""

    gpu: str
    gpus_per_node: int
    nvlink_bytes_per_s: float
    card_bytes_per_s: float
    matmul_efficiency: float = H100_MATMUL_EFFICIENCY


SYSTEMS = MappingProxyType(
    {
        "DGX-H100": System("h100", 8, 450e9, 50e9),
        "DGX-B200": System("b200", 8, 900e9, 50e9),
        "DGX-B300": System("b300", 8, 900e9, 100e9),
        "DGX-GB200": System("gb200", 64, 900e9, 50e9, GB200_MATMUL_EFFICIENCY),
        "DGX-GB300": System("gb300", 64, 900e9, 100e9),
    }
)
"""Systems by name (NVIDIA's data sheets); of the 72 GPUs of a rack a job has 64 (NVL72)."""

_Count = Annotated[int, Field(gt=0, le=10**6)]


class BridgeRow(BaseModel):
    """A measured row; ``fsdp`` above 0 shards parameters, an empty ``ep`` is 1."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    release: str
    task: str
    model: str
    system: str
    gpus: _Count
    precision: str
    gbs: _Count
    mbs: _Count
    sequence_length: _Count
    fsdp: Annotated[int, Field(ge=0)]
    tp: _Count
    pp: _Count
    cp: _Count
    vp: _Count
    ep: _Count
    tokens_per_s_gpu: Annotated[float, Field(gt=0)]
    model_tflops_gpu: Annotated[float, Field(gt=0)]

    @property
    def preset(self) -> str | None:
        """Name of the model's preset; None where there is none."""
        return MODELS.get(self.model.partition(" (")[0])

    @property
    def data(self) -> int:
        """Data ranks."""
        return self.gpus // (self.tp * self.pp * self.cp)

    @property
    def misfit(self) -> str:
        """Reason why the row is not predicted; empty where it is."""
        if self.preset is None:
            return "the model has no preset"
        if (self.tp * self.data * self.cp) % self.ep:
            return "experts do not divide the GPUs of a stage"
        return ""

    @property
    def is_sparse(self) -> bool:
        """Whether the model has experts."""
        return self.preset is not None and architecture_named(self.preset).experts is not None

    @property
    def predicted_tokens_per_s_gpu(self) -> float:
        """Tokens per second and GPU in the simulator."""
        return self.gbs * self.sequence_length / self.gpus / step_s(self)

    @property
    def kernels(self) -> KernelFigures:
        """Figures of its kernels: attention skips what its mask hides, the rest is of A100."""
        graphs, hides_all_to_alls = self._graphs
        return replace(
            FITTED_KERNELS,
            matmul_efficiency=SYSTEMS[self.system].matmul_efficiency,
            attention_share=0.5,
            graphs=graphs,
            hides_all_to_alls=hides_all_to_alls,
        )

    @property
    def _graphs(self) -> tuple[GraphScope, bool]:
        """Reach of CUDA graphs, and whether all-to-alls are hidden, by the recipes [1]_."""
        if not self.is_sparse:
            return "none", False
        is_small, is_middle = "30B" in self.model, "235B" in self.model
        is_h100, is_b200 = self.system == "DGX-H100", self.system == "DGX-B200"
        if self.release >= "26.06" and self.precision == "MXFP8":
            return ("partial" if is_b200 and not is_middle else "full"), True
        if is_h100:
            return "none", is_middle or (is_small and self.release >= "26.02")
        if is_small or SYSTEMS[self.system].gpus_per_node > 8:
            return "partial", False
        hiding = {"DGX-B200": "25.11", "DGX-B300": "26.02"}[self.system]
        return "none", is_middle and self.release.startswith(hiding)


def read_bridge_rows(path: Path) -> Iterator[BridgeRow]:
    """Read a CSV file of rows.

    Raises
    ------
    ValueError
        If a value or a column is wrong; naming file, line, field, what is allowed and what came.
    """
    lines = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    for number, line in enumerate(lines, start=2):
        with form_errors(f"{path}: line {number}"):
            row = BridgeRow.model_validate(line | {"ep": line.get("ep") or "1"})
        for field, known in (("system", SYSTEMS), ("precision", PRECISIONS)):
            require_one_of(f"{path}: line {number}", field, getattr(row, field), known)
        if row.gpus % (row.tp * row.pp * row.cp) or row.gbs % (row.mbs * row.data):
            raise ValueError(
                f"{path}: line {number}: gpus must be a multiple of tp x pp x cp, and gbs of mbs x "
                f"data ranks; got {row.gpus} and {row.gbs}"
            )
        yield row


def step_s(row: BridgeRow) -> float:
    """Time of a step in the simulator. [s]"""
    same = {"release": "", "tokens_per_s_gpu": 1.0, "model_tflops_gpu": 1.0}
    return _step_s(row.model_copy(update=same), row.kernels)


@lru_cache(maxsize=256)
def _step_s(row: BridgeRow, kernels: KernelFigures) -> float:
    together = row.mbs * row.data
    workload = build_workload(
        str(row.preset),
        num_microbatches=row.gbs // together,
        microbatch_size=together,
        sequence_length=row.sequence_length,
        precision=PRECISIONS[row.precision],
    )
    is_interleaved = row.pp > 1 and row.vp > 1
    shared = Parallelism(
        tensor=row.tp,
        data=row.data,
        pipeline=row.pp,
        chunks=row.vp if is_interleaved else 1,
        context=row.cp,
        expert=row.ep,
        whole_experts=row.tp > 1 and row.ep > 1,
        sharding="parameters" if row.fsdp else "optimiser" if row.data * row.cp > 1 else "none",
    )
    plan = Plan(
        placement=Placement(domain_of_layer=(0,) * workload.num_layers),
        schedule="interleaved_1f1b" if is_interleaved else "1f1b",
        parallelism=(shared,),
        exchange=GradientExchange(overlapped=True),
    )
    return simulate_compiled(Topology.of([_cluster(row, kernels)], []), workload, plan).makespan_s


def _cluster(row: BridgeRow, kernels: KernelFigures) -> Domain:
    """The system with the GPUs of the row."""
    system = SYSTEMS[row.system]
    kind, size = gpu_kind_named("of a row", system.gpu), min(system.gpus_per_node, row.gpus)
    latency_s = FITTED_FIGURES.step_latency_s
    return Domain(
        name="cluster",
        num_gpus=row.gpus,
        gpu_peak_flops_per_s=kind.peak_flops_per_s,
        gpu_memory_bytes=kind.memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=kind.memory_bandwidth_bytes_per_s,
        attainable_fraction=1.0,
        intra_bandwidth_bytes_per_s=system.nvlink_bytes_per_s,
        intra_latency_s=latency_s,
        kernels=kernels,
        gpu_kind=kind.name,
        nodes=Nodes(
            gpus_per_node=size,
            nics_per_node=size,
            nic_bandwidth_bytes_per_s=system.card_bytes_per_s,
            nic_latency_s=latency_s,
        ),
    )
