"""Stages of measured zero-bubble settings: times of passes, memory, and what follows a step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from calibration.measured.runs import FITTED_FIGURES, Setup
from des import NO_CORRECTIONS, Domain
from des.costs.collectives import ring_all_reduce_s
from des.costs.layer_times import GpuSpeed, PassSeconds, head_seconds, moving_s, speed_of
from des.costs.update_times import update_figures
from des.devices.gpu_kinds import gpu_kind_named
from des.job.architecture import Architecture
from des.job.models import recomputation_named
from des.job.transformer import (
    ACTIVATION_BYTES,
    embedding_parameters,
    head_parameters,
    layer_activation_bytes,
    layer_parameters,
    layer_weight_input_bytes,
)
from des.job.workload import ModelShape
from des.schedules import Border, Pipeline
from scenarios.reproduce.measured_zero_bubble_rows import ThroughputRow

STATE_BYTES = 18
"""Model state of Megatron-LM a parameter: weight 2, gradient in FP32 4, Adam in FP32 12. [bytes]"""

SUMMED_GRADIENT_BYTES = 4
"""Size of a gradient as Megatron-LM sums it up. [bytes]"""


@dataclass(frozen=True, kw_only=True)
class MeasuredStages:
    """Stages of a setting on its GPUs, one GPU a device.

    ``has_ends`` says whether the first and the last stage differ from the others: the profiled
    times are then those of the average stage.
    """

    row: ThroughputRow
    setup: Setup
    has_ends: bool = True

    @cached_property
    def architecture(self) -> Architecture:
        """The model."""
        return self.row.architecture(self.setup.vocabulary_size)

    @cached_property
    def _gpu(self) -> Domain:
        model = gpu_kind_named("of a measured setting", self.setup.gpu)
        return Domain(
            name="gpu",
            num_gpus=1,
            gpu_peak_flops_per_s=model.peak_flops_per_s,
            gpu_memory_bytes=model.memory_bytes,
            gpu_memory_bandwidth_bytes_per_s=model.memory_bandwidth_bytes_per_s,
            attainable_fraction=1.0,
            intra_bandwidth_bytes_per_s=self.setup.intra_bandwidth_bytes_per_s,
            intra_latency_s=FITTED_FIGURES.step_latency_s,
            kernels=FITTED_FIGURES.kernels,
        )

    @cached_property
    def _speed(self) -> GpuSpeed:
        speed = speed_of(self._gpu)
        assert speed is not None  # it has kernels
        return speed

    def _layers_of_chunks(self, num_chunks: int) -> list[int]:
        """Layers of every stage, chunks counted one by one."""
        row = self.row
        layers = [row.layers_per_stage // num_chunks] * (row.num_stages * num_chunks)
        layers[0] -= 1
        layers[-1] -= 1
        return layers

    def _embedding_seconds(self) -> PassSeconds:
        """Times of looking up vectors, and of adding up their gradients. [s]"""
        tokens = self.row.microbatch_size * self.row.sequence_length
        moved_s = moving_s(2.0 * ACTIVATION_BYTES * tokens * self.row.hidden_size, self._speed)
        return PassSeconds(moved_s, moved_s, 0.0, 0.0)

    def _head_seconds(self) -> PassSeconds:
        shape = ModelShape(
            architecture=self.architecture,
            batch_size=self.row.microbatch_size,
            sequence=self.row.sequence_length,
            recomputation=recomputation_named(self.setup.recomputation),
            num_layers=self.row.num_layers,
        )
        return head_seconds(shape, self._speed, tensor=1, data=1)

    def passes_s(self, num_chunks: int = 1) -> list[tuple[float, ...]]:
        """Times of F, D and W, each over all stages, of one microbatch. [s]

        Embedding and head take what shapes give them; the layers share the rest of the stages'
        profiled sum equally.
        """
        row = self.row
        layers = self._layers_of_chunks(num_chunks)
        if not self.has_ends:
            return [(each / num_chunks,) * len(layers) for each in row.profile_s]
        times = []
        for profiled_s, first_s, last_s in zip(
            row.profile_s, self._embedding_seconds(), self._head_seconds(), strict=False
        ):
            layer_s = (row.num_stages * profiled_s - first_s - last_s) / row.num_layers
            own = [count * layer_s for count in layers]
            own[0] += first_s
            own[-1] += last_s
            times.append(tuple(own))
        return times

    def pipeline(self, num_chunks: int = 1) -> Pipeline:
        """The setting with every stage cut into equal chunks, and memory without limit."""
        row = self.row
        layers = self._layers_of_chunks(num_chunks)
        forward_s, input_s, weight_s = self.passes_s(num_chunks)
        kept, halved = self.layer_bytes
        uniform = Pipeline.uniform(
            len(layers),
            row.num_microbatches,
            border=Border(latency_s=row.communication_latency_ms / 1000.0),
            num_devices=row.num_stages,
        )
        return replace(
            uniform,
            forward_s=forward_s,
            input_gradient_s=input_s,
            weight_gradient_s=weight_s,
            activation_bytes=tuple(count * kept for count in layers),
            weight_input_bytes=tuple(count * halved for count in layers),
        )

    @cached_property
    def layer_bytes(self) -> tuple[float, float]:
        """Memory of a layer and microbatch up to each half of its backward pass. [bytes]"""
        size, sequence = self.row.microbatch_size, self.row.sequence_length
        return (
            layer_activation_bytes(
                self.architecture,
                batch_size=size,
                sequence=sequence,
                recomputation=recomputation_named(self.setup.recomputation),
            ),
            layer_weight_input_bytes(self.architecture, batch_size=size, sequence=sequence),
        )

    @cached_property
    def parameters(self) -> Sequence[float]:
        """Parameters of every device; the last has its own copy of the token table."""
        found = [count * layer_parameters(self.architecture) for count in self._layers_of_chunks(1)]
        found[0] += embedding_parameters(self.architecture)
        found[-1] += head_parameters(self.architecture) + self._table_parameters
        return found

    @property
    def _table_parameters(self) -> int:
        return self.architecture.vocabulary_size * self.architecture.hidden_size

    @cached_property
    def after_step_s(self) -> float:
        """Time from the last gradient to the next iteration: exchange of the table, update. [s]

        The first and the last stage hold the token table both, and sum up its gradient, each by
        its own network card where they are in different nodes. All devices update at a time.
        """
        setup = self.setup
        is_inside = self.row.num_stages <= setup.gpus_per_node
        exchange_s = ring_all_reduce_s(
            SUMMED_GRADIENT_BYTES * self._table_parameters,
            2,
            setup.intra_bandwidth_bytes_per_s if is_inside else setup.nic_bandwidth_bytes_per_s,
            FITTED_FIGURES.step_latency_s,
        )
        parameter_s, overhead_s = update_figures(
            SUMMED_GRADIENT_BYTES, self._gpu, None, NO_CORRECTIONS
        )
        return exchange_s + max(self.parameters) * parameter_s + overhead_s
