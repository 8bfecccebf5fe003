"""Rows of the published table of bubble rates, and the pipelines that they describe."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from des.job.architecture import Architecture
from des.job.transformer import layer_activation_bytes, layer_weight_input_bytes
from des.schedules import Border, Pipeline
from scenarios.reproduce.cases import (
    CaseForm,
    Count,
    NonNegativeNumber,
    PositiveNumber,
    without_null,
)

MS_PER_S = 1000.0
COLUMNS = ("1f1b", "interleaved_1f1b", "zb_h1", "zb_h2", "zb_2p")
"""Columns of the table. The target of each is how far ours may be from what is published."""

SEQUENCE = 1024
NUM_END_LAYERS = 2
"""Embedding and head, each of which takes the place of a layer on its stage."""


def _gpt(name: str, num_layers: int, hidden_size: int, num_heads: int) -> Architecture:
    return Architecture(
        name=name,
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_key_value_heads=num_heads,
        ffn_size=4 * hidden_size,
        vocabulary_size=50257,
        gated_ffn=False,
        tied_embeddings=True,
        num_positions=SEQUENCE,
    )


MODELS = {
    "1.5B": _gpt("1.5B", 22, 2304, 24),
    "6.2B": _gpt("6.2B", 30, 4096, 32),
    "14.6B": _gpt("14.6B", 46, 5120, 40),
    "28.3B": _gpt("28.3B", 62, 6144, 48),
}
"""Models of the paper: of GPT-3's kind, trained on sequences of 1024 tokens."""


class BubbleRow(CaseForm):
    """One setting of the table: measured times of a stage, and a bubble rate for each schedule.

    ``weight_input_fraction`` is the part of a microbatch's activations that is kept from the input
    gradient to the weight gradient. It and ``chunks_per_device`` follow from the model where that
    is one of the paper's; a row that gives them is taken at its word.
    """

    model: str
    num_stages: Annotated[Count, Field(ge=2)]
    num_microbatches: Count
    forward_ms: PositiveNumber
    backward_input_ms: PositiveNumber
    backward_weight_ms: PositiveNumber
    communication_latency_ms: NonNegativeNumber
    bubble_rate: Annotated[
        dict[str, Annotated[float, Field(ge=0, lt=1)] | None], Field(min_length=1)
    ]
    chunks_per_device: Count | None = None
    weight_input_fraction: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _known_schedules_with_what_they_need(self) -> Self:
        for name in self.bubble_rate:
            if name not in COLUMNS:
                raise ValueError(
                    f"bubble_rate must have keys of {', '.join(COLUMNS)}, got {name!r}"
                )
        if "interleaved_1f1b" in self.published and self.num_chunks is None:
            raise ValueError(
                f"chunks_per_device must be given for interleaved_1f1b of model {self.model!r} on "
                f"{self.num_stages} stages (known: {', '.join(MODELS)}, where their layers with "
                "embedding and head divide by the stages), got none"
            )
        if "zb_2p" in self.published and self.bytes_of_layer is None:
            raise ValueError(
                f"weight_input_fraction must be given for zb_2p of model {self.model!r} "
                f"(known: {', '.join(MODELS)}), got none"
            )
        return self

    @property
    def published(self) -> dict[str, float]:
        """Published bubble rates by schedule."""
        return without_null(self.bubble_rate)

    @property
    def num_chunks(self) -> int | None:
        """Stages a device under interleaved 1F1B, of one layer each; None if not known.

        Embedding and head count as a layer each, as in the authors' own evaluation of schedules.
        """
        if self.chunks_per_device is not None or self.model not in MODELS:
            return self.chunks_per_device
        num_layers = MODELS[self.model].num_layers + NUM_END_LAYERS
        return None if num_layers % self.num_stages else num_layers // self.num_stages

    @property
    def bytes_of_layer(self) -> tuple[float, float] | None:
        """Memory of a layer and microbatch up to each half of its backward pass; None if unknown.

        In units of one microbatch where only the fraction is given.
        """
        if self.weight_input_fraction is not None:
            return 1.0, self.weight_input_fraction
        if self.model not in MODELS:
            return None
        model = MODELS[self.model]
        return (
            layer_activation_bytes(model, batch_size=1, sequence=SEQUENCE, recomputation="none"),
            layer_weight_input_bytes(model, batch_size=1, sequence=SEQUENCE),
        )

    @property
    def ideal_s(self) -> float:
        """Time that every device computes. [s]"""
        per_microbatch_ms = self.forward_ms + self.backward_input_ms + self.backward_weight_ms
        return self.num_microbatches * per_microbatch_ms / MS_PER_S

    def pipeline(self, num_chunks: int = 1) -> Pipeline:
        """The setting with every stage cut into equal chunks, and memory without limit."""
        return Pipeline.uniform(
            self.num_stages * num_chunks,
            self.num_microbatches,
            forward_s=self.forward_ms / MS_PER_S / num_chunks,
            input_gradient_s=self.backward_input_ms / MS_PER_S / num_chunks,
            weight_gradient_s=self.backward_weight_ms / MS_PER_S / num_chunks,
            border=Border(latency_s=self.communication_latency_ms / MS_PER_S),
            num_devices=self.num_stages,
        )
