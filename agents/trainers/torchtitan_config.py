"""Configuration of torchtitan with torchft: its tables as values, their TOML text, and back."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import accumulate, pairwise
from typing import Literal

from pydantic import ValidationError

from des.base.strict_forms import first_error, form_of
from des.job.architecture import Architecture
from des.job.precision import Precision

Modules = tuple[tuple[str, ...], ...]
"""Names of the modules of each part of a model."""

EXCHANGED_BITS: dict[float, tuple[bool, Literal["bfloat16", "float32"]]] = {
    8.0: (True, "float32"),
    16.0: (False, "bfloat16"),
    32.0: (False, "float32"),
}
"""Whether changes are quantised, and the type of parameters, by the bits of a value on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSizes:
    """Sizes of a model of the llama3 module."""

    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    hidden_dim: int
    vocab_size: int
    enable_weight_tying: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTable:
    """Batches; ``local_batch_size`` is of all microbatches of a rank in a pipeline, else of one."""

    seq_len: int
    local_batch_size: int
    global_batch_size: int
    dtype: Literal["bfloat16", "float32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelismTable:
    """Degrees and stages. The name of the schedule lays stages over ranks, a file has the order."""

    tensor_parallel_degree: int
    enable_sequence_parallel: bool
    context_parallel_degree: int
    data_parallel_replicate_degree: int
    data_parallel_shard_degree: int
    fsdp_reshard_after_forward: Literal["always", "never"]
    pipeline_parallel_degree: int
    pipeline_parallel_schedule: Literal["1F1B", "ZBVZeroBubble"]
    pipeline_parallel_schedule_csv: str
    pipeline_parallel_microbatch_size: int
    module_fqns_per_model_part: Modules


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTable:
    """Recomputation."""

    mode: Literal["none", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationTable:
    """Format of linear layers."""

    linear: Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterTable:
    """DiLoCo of torchft between launches; without names of fragments all modules are one."""

    replica_id: int
    group_size: int
    sync_steps: int
    fragment_sync_delay: int
    should_quantize: bool
    module_fqns_per_model_fragment: Modules
    num_fragments: int
    min_replica_size: int
    enable: bool = True
    semi_sync_method: str = "diloco"
    process_group: str = "nccl"

    def __post_init__(self) -> None:
        count = self.num_fragments
        if self.sync_steps % count or self.fragment_sync_delay >= self.sync_steps // count:
            raise ValueError(
                f"torchft: the {count} fragments must divide the {self.sync_steps} steps between "
                "exchanges, and the delay be below the quotient, which torchft checks when it "
                f"starts; got a delay of {self.fragment_sync_delay}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchtitanConfig:
    """A run of torchtitan; one of several where an outer exchange joins them."""

    model: LlamaSizes
    training: TrainingTable
    parallelism: ParallelismTable
    activation_checkpoint: CheckpointTable
    quantization: QuantizationTable
    fault_tolerance: OuterTable | None = None

    def __post_init__(self) -> None:
        stages, ranks = len(self.stage_layers), self.parallelism.pipeline_parallel_degree
        per_rank, outer = stages // ranks, self.fault_tolerance
        if stages % ranks or (self.is_wave and per_rank != 2):
            raise ValueError(
                "torchtitan: every rank must have equally many stages, and two where they go there "
                f"and back; got {stages} over {ranks} ranks"
            )
        if outer is not None and (per_rank > 1 or ranks > 1 < outer.num_fragments):
            raise ValueError(
                "torchtitan: DiLoCo must have one stage for each rank, and one fragment in a "
                f"pipeline; got {per_rank} and {outer.num_fragments}, of which torchtitan "
                "exchanges the first stage's only, without a word"
            )

    @property
    def stage_layers(self) -> tuple[int, ...]:
        """Layers of each stage, in the order of the model."""
        return layers_of_modules(self.parallelism.module_fqns_per_model_part, self.model.n_layers)

    @property
    def is_wave(self) -> bool:
        """Whether stages go through the ranks there and back, in place of round and round."""
        return self.parallelism.pipeline_parallel_schedule == "ZBVZeroBubble"

    def text(self) -> str:
        """Return the tables as TOML, which has the same texts, numbers and lists as JSON."""
        return "\n".join(
            "".join((f"[{name}]\n", *(f"{key} = {json.dumps(one)}\n" for key, one in own.items())))
            for name, own in asdict(self).items()
            if own is not None
        )


def read_config(text: str) -> TorchtitanConfig:
    """Read what `TorchtitanConfig.text` wrote.

    Raises
    ------
    ValueError
        If it is not TOML, or a key or value is none that is written; naming it.
    """
    parts = {
        "model": LlamaSizes,
        "training": TrainingTable,
        "parallelism": ParallelismTable,
        "activation_checkpoint": CheckpointTable,
        "quantization": QuantizationTable,
        "fault_tolerance": OuterTable,
    }
    try:
        tables = _with_tuples(tomllib.loads(text))
        form = form_of(TorchtitanConfig, parts=tuple(parts.items())).model_validate(tables)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"config.toml: not readable as TOML: {error}") from error
    except ValidationError as error:
        raise ValueError(f"config.toml: {first_error(error)}") from error
    given = {field.name: getattr(form, field.name) for field in fields(TorchtitanConfig)}
    return TorchtitanConfig(
        **{name: own and parts[name](**dict(own)) for name, own in given.items()}
    )


def _with_tuples(value: object) -> object:
    """Plain values with tuples in place of lists."""
    if isinstance(value, dict):
        return {key: _with_tuples(one) for key, one in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def module_names(stage_layers: Sequence[int]) -> Modules:
    """Return the names of the modules of each stage.

    Examples
    --------
    >>> module_names((1, 2))
    (('tok_embeddings', 'layers.0'), ('layers.1', 'layers.2', 'norm', 'lm_head'))
    """
    ends = [0, *accumulate(stage_layers)]
    return with_ends([range(*own) for own in pairwise(ends)])


def with_ends(parts: Sequence[Sequence[int]]) -> Modules:
    """Return names of the layers of each part, and of the ends of the model in the outer ones."""
    found = [[f"layers.{layer}" for layer in own] for own in parts]
    found[0].insert(0, "tok_embeddings")
    found[-1] += ["norm", "lm_head"]
    return tuple(map(tuple, found))


def layers_of_modules(parts: Modules, num_layers: int) -> tuple[int, ...]:
    """Layers of each stage of a list of modules.

    Raises
    ------
    ValueError
        If a module is missing, unknown or in another place: torchtitan leaves it out silently.
    """
    found = tuple(sum(name.startswith("layers.") for name in own) for own in parts)
    if found and all(found) and sum(found) == num_layers and module_names(found) == parts:
        return found
    raise ValueError(
        f"module_fqns_per_model_part: must be tok_embeddings, layers.0 to layers.{num_layers - 1} "
        f"once and in order, norm and lm_head, with a layer in each stage; got layers {found} and "
        "others, of which torchtitan would lose modules without a word"
    )


def llama_sizes(own: Architecture, num_layers: int, *, in_pipeline: bool) -> LlamaSizes:
    """Return the sizes of a model as torchtitan's llama3 module has them.

    Raises
    ------
    ValueError
        If the model is another one.
    """
    for field, is_other in (
        ("experts", own.experts is not None),
        ("latent_attention", own.latent_attention is not None),
        ("a feed-forward that is not gated", not own.gated_ffn),
        ("biases", any(own.adds_bias(part) for part in ("qkv", "output", "ffn"))),
        ("norms of queries and keys", own.qk_norm or own.whole_qk_norm),
        ("num_norms other than 2", own.num_norms != 2),
        ("attention_sinks", own.attention_sinks),
        ("attention_window", own.attention_window is not None),
        ("learned positions", own.num_positions > 0),
        ("a head_size of its own", own.query_head_size * own.num_heads != own.hidden_size),
        ("tied embeddings in a pipeline", own.tied_embeddings and in_pipeline),
    ):
        if is_other:
            raise ValueError(
                f"torchtitan: models must be of its llama3 module, without {field}; {own.name} "
                "has it"
            )
    return LlamaSizes(
        dim=own.hidden_size,
        n_layers=num_layers,
        n_heads=own.num_heads,
        n_kv_heads=own.num_key_value_heads,
        hidden_dim=own.ffn_size,
        vocab_size=own.vocabulary_size,
        enable_weight_tying=own.tied_embeddings,
    )
