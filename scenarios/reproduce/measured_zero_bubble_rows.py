"""Rows of throughput and memory measured with the zero-bubble schedules, and their files."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from calibration.measured.runs import Setup
from des.devices.gpu_kinds import gpu_kind_named
from des.job.architecture import Architecture
from scenarios.reproduce.cases import (
    CaseForm,
    Count,
    NonNegativeNumber,
    PositiveNumber,
    read_measured,
    without_null,
)

NUM_END_LAYERS = 2
"""Layers that the first and the last stage have less than others, one each."""

SCHEDULES = ("1f1b", "interleaved_1f1b", "zb_1p", "zb_2p")

Figures = dict[str, PositiveNumber | None]


class ThroughputRow(CaseForm):
    """One setting: sizes, profiled times of a pass, and what was measured, by schedule.

    Every stage has as many layers as the others, but the first and the last have one less, as they
    have the embedding and the head. Interleaved 1F1B has a layer a chunk, embedding and head being
    chunks of their own.
    """

    model: str
    num_layers: Count
    num_heads: Count
    hidden_size: Count
    sequence_length: Count
    num_stages: Annotated[Count, Field(ge=2)]
    num_microbatches: Count
    microbatch_size: Count
    forward_ms: PositiveNumber
    backward_input_ms: PositiveNumber
    backward_weight_ms: PositiveNumber
    communication_latency_ms: NonNegativeNumber
    measured_samples_per_gpu_per_second: Figures
    measured_memory_gb_per_gpu: Figures = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known_schedules_on_even_stages(self) -> Self:
        for field in ("measured_samples_per_gpu_per_second", "measured_memory_gb_per_gpu"):
            for name in getattr(self, field):
                if name not in SCHEDULES:
                    raise ValueError(
                        f"{field} must have keys of {', '.join(SCHEDULES)}, got {name!r}"
                    )
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size must be a multiple of num_heads, {self.num_heads}; "
                f"got {self.hidden_size}"
            )
        if (self.num_layers + NUM_END_LAYERS) % self.num_stages:
            raise ValueError(
                f"num_layers must be {NUM_END_LAYERS} less than a multiple of num_stages, "
                f"{self.num_stages}; got {self.num_layers}"
            )
        if self.layers_per_stage == 1 and "interleaved_1f1b" in self.schedules:
            raise ValueError(
                "num_layers must leave several layers a stage where interleaved_1f1b has a "
                f"figure; got {self.num_layers} on {self.num_stages} stages"
            )
        return self

    @property
    def throughput(self) -> dict[str, float]:
        """Measured samples per GPU and second, by schedule."""
        return without_null(self.measured_samples_per_gpu_per_second)

    @property
    def memory_gib(self) -> dict[str, float]:
        """Measured peak memory of the fullest GPU, by schedule."""
        return without_null(self.measured_memory_gb_per_gpu)

    @property
    def schedules(self) -> tuple[str, ...]:
        """Schedules with any figure."""
        return tuple(name for name in SCHEDULES if name in self.throughput | self.memory_gib)

    @property
    def layers_per_stage(self) -> int:
        """Layers of a stage that is neither the first nor the last."""
        return (self.num_layers + NUM_END_LAYERS) // self.num_stages

    @property
    def profile_s(self) -> tuple[float, float, float]:
        """Profiled times of F, D and W of a stage over one microbatch. [s]"""
        forward, backward, weight = self.forward_ms, self.backward_input_ms, self.backward_weight_ms
        return forward / 1000.0, backward / 1000.0, weight / 1000.0

    def architecture(self, vocabulary_size: int) -> Architecture:
        """The model: one of GPT-3's kind."""
        return Architecture(
            name=self.model,
            num_layers=self.num_layers,
            hidden_size=self.hidden_size,
            num_heads=self.num_heads,
            num_key_value_heads=self.num_heads,
            ffn_size=4 * self.hidden_size,
            vocabulary_size=vocabulary_size,
            gated_ffn=False,
            tied_embeddings=True,
            num_positions=self.sequence_length,
        )


def read_throughputs(path: Path, shipped: Path) -> tuple[tuple[ThroughputRow, ...], Setup]:
    """Read rows, and the setup that they were measured on.

    Raises
    ------
    ValueError
        If a file is wrong; naming file, row, field, what is allowed and what came.
    """
    rows, setup = read_measured(path, shipped, ThroughputRow, Setup)
    gpu_kind_named(f"of {path}", setup.gpu)
    return rows, setup
