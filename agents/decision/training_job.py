"""A training job as a user gives it: a model and the sequences of one step, however grouped."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Self

from des import Workload, build_workload
from des.base.checks import MOST_ITEMS, require_count
from des.job.models import architecture_named, kept_activations
from des.job.precision import Precision, precision_named
from des.job.transformer import AttentionKernel, GradientPrecision, Recomputation

MICROBATCH_SIZES = (1, 2, 4)
"""Sequences of a microbatch to choose from."""

MOST_TOKENS = 10**12
"""Most tokens of a step accepted; more is taken for a typing error."""


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A model and the sequences of an iteration, however they are divided into microbatches.

    ``num_layers`` is what the model is divided into; None is its own number. ``attention`` is the
    kernel, None that of each recomputation. Passes multiply in ``precision``. A ``given`` workload
    stays as it is, each of its microbatches counts as a sequence, see `given_job`.
    """

    model: str
    num_sequences: int
    sequence_length: int = 4096
    num_layers: int | None = None
    attention: AttentionKernel | None = None
    precision: Precision = "bf16"
    given: Workload | None = None

    def __post_init__(self) -> None:
        precision_named("training job", self.precision)
        kept_activations("full", self.attention)
        if self.given is None:
            architecture_named(self.model)
        require_count("training job", "num_sequences", self.num_sequences)
        require_count("training job", "sequence_length", self.sequence_length)
        if self.num_layers is not None:
            require_count("training job", "num_layers", self.num_layers, MOST_ITEMS)

    @classmethod
    def of(cls, workload: Workload, *, microbatch_size: int = 1) -> Self:
        """Return the job of a workload that `des.build_workload` made.

        Raises
        ------
        ValueError
            If it did not, or not with that size of microbatches.
        """
        job = cls(
            model=workload.name,
            num_sequences=workload.num_microbatches * microbatch_size,
            sequence_length=workload.tokens_per_microbatch // microbatch_size,
            num_layers=workload.num_layers,
            attention=None if workload.shape is None else workload.shape.attention,
            precision=workload.precision,
        )
        made = (job.workload(microbatch_size, name) for name in ("flash", "full", "none"))
        if not any(workload == each for each in made):
            raise ValueError(
                f"training job: workload {workload.name} must be one of build_workload with "
                f"microbatch_size {microbatch_size}, got other layers, messages or gradients"
            )
        return job

    @classmethod
    def of_tokens(
        cls,
        model: str,
        tokens_per_step: int,
        sequence_length: int = 4096,
        num_layers: int | None = None,
        *,
        sizes: tuple[int, ...] = MICROBATCH_SIZES,
        precision: Precision = "bf16",
    ) -> Self:
        """Return the job of a number of tokens a step, rounded to whole sequences.

        Half a sequence is rounded up; ``tokens_per_step`` of the job is the rounded figure.

        Examples
        --------
        >>> TrainingJob.of_tokens("llama2_7b", 4_000_000).tokens_per_step
        4001792

        Raises
        ------
        ValueError
            If there is less than one sequence, or microbatches of none of the sizes divide them.
        """
        require_count("training job", "tokens_per_step", tokens_per_step, MOST_TOKENS)
        require_count("training job", "sequence_length", sequence_length)
        if tokens_per_step < sequence_length:
            raise ValueError(
                f"training job: tokens_per_step must be at least one sequence of "
                f"{sequence_length} tokens, got {tokens_per_step}"
            )
        job = cls(
            model=model,
            num_sequences=(2 * tokens_per_step + sequence_length) // (2 * sequence_length),
            sequence_length=sequence_length,
            num_layers=num_layers,
            precision=precision,
        )
        if not job.sizes_among(sizes):
            raise ValueError(
                f"training job: one of the microbatch sizes {', '.join(map(str, sizes))} must "
                f"divide the sequences of tokens_per_step {tokens_per_step}, got "
                f"{job.num_sequences} sequences of {sequence_length} tokens"
            )
        return job

    def in_precision(self, name: str) -> Self:
        """Return the job in a precision that a flag names, where its own is the default.

        Raises
        ------
        ValueError
            If there is none of that name, or the job has another that is not the default.
        """
        precision = precision_named("training job", name)
        if "bf16" not in (precision, self.precision) and precision != self.precision:
            raise ValueError(
                f"training job: precision must be that of the job, {self.precision}; got {name}"
            )
        return self if precision == "bf16" else replace(self, precision=precision)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one iteration."""
        return self.num_sequences * self.sequence_length

    def rounding(self, tokens_per_step: int) -> str:
        """Sentence on how given tokens a step were rounded; empty where they were not."""
        if tokens_per_step == self.tokens_per_step:
            return ""
        return (
            f"{tokens_per_step} tokens a step are rounded to {self.num_sequences} sequences of "
            f"{self.sequence_length}, {self.tokens_per_step} tokens"
        )

    @property
    def microbatch_sizes(self) -> tuple[int, ...]:
        """Sizes of `MICROBATCH_SIZES` that divide the sequences of an iteration."""
        return self.sizes_among(MICROBATCH_SIZES)

    def sizes_among(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes of microbatches that divide the sequences of an iteration."""
        return tuple(size for size in sizes if self.num_sequences % size == 0)

    @property
    def recomputations(self) -> tuple[Recomputation, ...]:
        """Recomputations to choose from, the one that keeps most first; one if ``given``."""
        if self.given is not None:
            return ("flash",)
        return ("none" if self.attention == "plain" else "flash"), "full"

    def workload(
        self,
        microbatch_size: int,
        recomputation: str = "flash",
        gradient_precision: GradientPrecision = "bf16",
    ) -> Workload:
        """Workload of the job in microbatches of this size."""
        if self.given is not None:
            return self.given
        return _workload(self, microbatch_size, recomputation, gradient_precision)

    @cached_property
    def layer_count(self) -> int:
        """Layers that the model is divided into."""
        return self.num_layers or architecture_named(self.model).num_layers


@lru_cache(maxsize=1024)
def _workload(
    job: TrainingJob,
    microbatch_size: int,
    recomputation: str,
    gradient_precision: GradientPrecision,
) -> Workload:
    if job.num_sequences % microbatch_size:
        raise ValueError(
            f"training job: microbatch_size must divide the {job.num_sequences} sequences of an "
            f"iteration, got {microbatch_size}"
        )
    return build_workload(
        job.model,
        num_layers=job.num_layers,
        num_microbatches=job.num_sequences // microbatch_size,
        microbatch_size=microbatch_size,
        sequence_length=job.sequence_length,
        recomputation=recomputation,
        gradient_precision=gradient_precision,
        attention=job.attention if recomputation in ("full", "selective") else None,
        precision=job.precision,
    )


def given_job(workload: Workload) -> TrainingJob:
    """Return the job of any workload, whose microbatches and layers stay as they are.

    Examples
    --------
    >>> job = given_job(build_workload("llama2_7b", num_microbatches=6, microbatch_size=2))
    >>> job.num_sequences, job.workload(1).num_microbatches, job.layer_count
    (6, 6, 32)
    """
    return TrainingJob(
        model=workload.name,
        num_sequences=workload.num_microbatches,
        sequence_length=workload.tokens_per_microbatch,
        num_layers=workload.num_layers,
        precision=workload.precision,
        given=workload,
    )


def regrouped(
    workload: Workload, sizes: tuple[int, ...] = MICROBATCH_SIZES
) -> tuple[Workload, ...]:
    """Return a workload's step in microbatches of every size that divides it, its own first.

    A workload without a shape has its own size alone.

    Examples
    --------
    >>> job = build_workload("llama2_7b", num_microbatches=6)
    >>> [each.num_microbatches for each in regrouped(job)]
    [6, 3]
    """
    shape = workload.shape
    if shape is None or shape.batch_size != int(shape.batch_size):
        return (workload,)
    own = int(shape.batch_size)
    num_sequences = workload.num_microbatches * own
    others = [
        build_workload(
            shape.architecture,
            num_layers=shape.num_layers,
            num_microbatches=num_sequences // size,
            microbatch_size=size,
            sequence_length=shape.sequence,
            recomputation=shape.recomputation,
            gradient_precision=workload.gradient_precision,
            attention=shape.attention,
            precision=workload.precision,
        )
        for size in sizes
        if size != own and num_sequences % size == 0
    ]
    return (workload, *others)
