"""Sizes of measured iterations: the model, and the way in which it was shared."""

from typing import Annotated

from pydantic import ConfigDict, Field

from des.base.strict_forms import StrictForm
from des.job.architecture import Architecture, MixtureOfExperts

FROZEN = ConfigDict(frozen=True)
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0, le=10**6)]


class RunSizes(StrictForm):
    """One iteration of a transformer under 1F1B: sizes, and the way it was shared.

    With an ``interleaving`` above 1 every device has that many chunks of layers. Sizes that are
    left out are those of a GPT: as many heads of keys and values as of queries, a plain
    feed-forward of four times the width, learned positions and a tied embedding.
    """

    model_config = FROZEN

    num_gpus: Count
    global_batch: Count
    microbatch_size: Count
    hidden_size: Count
    num_heads: Count
    num_layers: Count
    sequence_length: Count
    tensor: Count
    data: Count
    pipeline: Count
    interleaving: Count = 1
    num_key_value_heads: Count | None = None
    ffn_size: Count | None = None
    gated_ffn: bool = False
    tied_embeddings: bool = True
    num_experts: Count | None = None
    experts_per_token: Count | None = None
    expert_ffn_size: Count | None = None
    expert: Count = 1

    @property
    def label(self) -> str:
        """Sizes and the way in a few words."""
        return (
            f"h{self.hidden_size} L{self.num_layers} t{self.tensor} d{self.data} p{self.pipeline} "
            f"b{self.microbatch_size}"
        )

    def check(self) -> None:
        """Refuse a run that cannot have been one.

        Raises
        ------
        ValueError
            If the GPUs are not those of its groups, or a batch is no whole number of microbatches.
        """
        if self.tensor * self.data * self.pipeline != self.num_gpus:
            raise ValueError(
                f"num_gpus must be tensor x data x pipeline, "
                f"{self.tensor * self.data * self.pipeline}; got {self.num_gpus}"
            )
        step = self.microbatch_size * self.data
        if self.global_batch % step:
            raise ValueError(
                f"global_batch must be a multiple of microbatch_size x data, {step}; "
                f"got {self.global_batch}"
            )
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size must be a multiple of num_heads, {self.num_heads}; "
                f"got {self.hidden_size}"
            )
        of_experts = ("num_experts", "experts_per_token", "expert_ffn_size")
        missing = [name for name in of_experts if getattr(self, name) is None]
        if missing and len(missing) < len(of_experts):
            raise ValueError(f"{missing[0]} must be given with other sizes of experts, got none")

    def architecture(self, vocabulary_size: int) -> Architecture:
        """The model; one with a gated feed-forward has no learned positions."""
        experts = None
        if self.num_experts and self.experts_per_token and self.expert_ffn_size:
            experts = MixtureOfExperts(
                num_experts=self.num_experts,
                experts_per_token=self.experts_per_token,
                expert_ffn_size=self.expert_ffn_size,
            )
        return Architecture(
            name=self.label,
            num_layers=self.num_layers,
            hidden_size=self.hidden_size,
            num_heads=self.num_heads,
            num_key_value_heads=self.num_key_value_heads or self.num_heads,
            ffn_size=self.ffn_size or 4 * self.hidden_size,
            vocabulary_size=vocabulary_size,
            gated_ffn=self.gated_ffn,
            tied_embeddings=self.tied_embeddings,
            num_positions=0 if self.gated_ffn else self.sequence_length,
            experts=experts,
        )


class MeasuredRun(RunSizes):
    """Run whose seconds an iteration were measured."""

    measured_iteration_s: Positive
    parameters_billion: Positive | None = None
