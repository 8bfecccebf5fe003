"""A run of torchtitan with torchft, as a value, and the modules of its stages."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from des.base.checks import require_count
from des.job.precision import Precision
from des.job.transformer import Recomputation


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchftExchange:
    """DiLoCo of torchft between launches.

    ``fragments`` are the layers that are exchanged together, all of them in one for plain DiLoCo.
    """

    replica: int
    num_replicas: int
    steps_between: int
    delay_steps: int
    bits: float
    fragments: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        count = len(self.fragments)
        if self.steps_between % count or self.delay_steps >= self.steps_between // count:
            raise ValueError(
                f"torchft: the {count} fragments must divide the {self.steps_between} steps "
                "between exchanges, and the delay be below the quotient, which torchft checks when "
                f"it starts; got a delay of {self.delay_steps}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchtitanConfig:
    """A run of torchtitan; one of several where an outer exchange joins them.

    Attributes
    ----------
    replicate, shard
        Data ranks of a stage that keep state whole, and that spread it over themselves.
    reshards
        Whether gathered parameters are dropped behind the forward pass.
    stage_layers
        Layers of each stage, in the order of the model.
    is_wave
        Whether stages go through the ranks there and back, in place of round and round.
    has_orders
        Whether a file has the order of passes; else the schedule is torch's 1F1B.
    num_microbatches, microbatch_size
        Microbatches of each data rank in a step, and sequences of each.
    """

    tensor: int
    pipeline: int
    context: int
    replicate: int
    shard: int
    reshards: bool
    sequence_parallel: bool
    stage_layers: tuple[int, ...]
    is_wave: bool
    has_orders: bool
    num_microbatches: int
    microbatch_size: int
    global_batch_size: int
    sequence_length: int
    precision: Precision
    recomputation: Recomputation
    outer: TorchftExchange | None = None

    def __post_init__(self) -> None:
        for field in ("tensor", "pipeline", "context", "replicate", "shard", "microbatch_size"):
            require_count("torchtitan", field, getattr(self, field))
        if min(self.stage_layers) < 1 or len(self.stage_layers) % self.pipeline:
            raise ValueError(
                "torchtitan: every stage must have a layer, and every rank equally many stages; "
                f"got layers {self.stage_layers} over {self.pipeline} ranks"
            )
        per_rank = self.num_chunks
        if self.is_wave and per_rank != 2:
            raise ValueError(
                f"torchtitan: stages there and back must be 2 a rank, got {per_rank} a rank"
            )
        if self.outer is not None and (per_rank > 1 or self.pipeline > 1 < self.num_fragments):
            raise ValueError(
                "torchtitan: DiLoCo must have one stage for each rank, and one fragment in a pipeline; "
                f"got {per_rank} stages for each rank and {self.num_fragments} fragments, of which "
                "torchtitan exchanges the first stage's only, without a word"
            )

    @property
    def num_chunks(self) -> int:
        """Stages of each rank."""
        return len(self.stage_layers) // self.pipeline

    @property
    def num_fragments(self) -> int:
        """Parts of the model that are exchanged one at a time."""
        return 1 if self.outer is None else len(self.outer.fragments)


def module_names(stage_layers: Sequence[int]) -> list[list[str]]:
    """Return the names of the modules of each stage.

    Examples
    --------
    >>> module_names((1, 2))
    [['tok_embeddings', 'layers.0'], ['layers.1', 'layers.2', 'norm', 'lm_head']]
    """
    ends = [0, *accumulate(stage_layers)]
    parts = [[f"layers.{layer}" for layer in range(*own)] for own in pairwise(ends)]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "lm_head"]
    return parts


def layers_of_modules(parts: Sequence[Sequence[str]], num_layers: int) -> tuple[int, ...]:
    """Layers of each stage of a list of modules.

    Raises
    ------
    ValueError
        If a module is missing, unknown or in another place: torchtitan leaves it out silently.
    """
    found = tuple(sum(name.startswith("layers.") for name in own) for own in parts)
    if not found or min(found) < 1 or sum(found) != num_layers:
        given: object = found
    elif (needed := module_names(found)) != [list(own) for own in parts]:
        given = next(own for own, each in zip(parts, needed, strict=True) if list(own) != each)
    else:
        return found
    raise ValueError(
        f"module_fqns_per_model_part: must be tok_embeddings, layers.0 to layers.{num_layers - 1} "
        f"once and in order, norm and lm_head, with a layer in each stage; got {given}, of which "
        "torchtitan would lose modules without a word"
    )
