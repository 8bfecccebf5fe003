"""Arguments of Megatron-LM: a run as a value, and the lines that say it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

from des.job.architecture import Architecture
from des.job.precision import Precision
from des.job.transformer import AttentionKernel, GradientPrecision, Recomputation

_PRECISION_LINES: dict[Precision, tuple[str, ...]] = {
    "bf16": (),
    "fp8": ("--fp8-format hybrid", "--fp8-recipe tensorwise"),
    "mxfp8": ("--fp8-format e4m3", "--fp8-recipe mxfp8"),
    "nvfp4": ("--fp4-format e2m1", "--fp4-recipe nvfp4"),
}
_RECOMPUTATION_LINES: dict[Recomputation, tuple[str, ...]] = {
    "flash": (),
    "none": (),
    "selective": ("--recompute-granularity selective",),
    "full": (
        "--recompute-granularity full",
        "--recompute-method uniform",
        "--recompute-num-layers 1",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronCommand:
    """A run of Megatron-LM.

    Attributes
    ----------
    stage_layers
        Layers of each stage, in the order of the model: chunk by chunk over the ranks.
    group_size
        Microbatches of a group of the interleaved schedule; None: as many as ranks.
    whole_experts
        Whether each expert is whole on a GPU; else it is cut over a tensor group.
    replica_order
        Whether consecutive ranks form a replica; else a stage of all replicas.
    num_gpus
        GPUs that are started; None where the text does not say.
    architecture
        Model of the command line; None where it does not say one.
    """

    tensor: int
    pipeline: int
    context: int
    expert: int
    whole_experts: bool
    micro_batch_size: int
    global_batch_size: int
    sequence_length: int
    num_layers: int
    stage_layers: tuple[int, ...]
    group_size: int | None
    replica_order: bool
    num_gpus: int | None
    optimiser_instances: int
    shards_optimiser: bool
    sequence_parallel: bool
    overlaps_gradients: bool
    gradient_precision: GradientPrecision
    recomputation: Recomputation
    attention: AttentionKernel | None
    precision: Precision
    architecture: Architecture | None

    def __post_init__(self) -> None:
        if sum(self.stage_layers) != self.num_layers or len(self.stage_layers) % self.pipeline:
            raise ValueError(
                f"Megatron-LM: layers of the stages must add up to {self.num_layers}, over a "
                f"multiple of {self.pipeline} stages; got {self.stage_layers}"
            )
        if min(self.stage_layers) < 1:
            raise ValueError(
                f"Megatron-LM: every stage must have a layer, got {self.stage_layers}; Megatron-LM "
                "does not check it, and may hang"
            )

    @property
    def num_chunks(self) -> int:
        """Stages of each rank."""
        return len(self.stage_layers) // self.pipeline

    @property
    def schedule(self) -> str:
        """Name of the schedule, with the size of its groups where it is another than usual."""
        if self.num_chunks == 1:
            return "1f1b"
        if self.group_size in (None, self.pipeline):
            return "interleaved_1f1b"
        return f"interleaved_1f1b_{(self.group_size or 0) / self.pipeline:.9g}x"


def plan_lines(command: MegatronCommand) -> Iterator[str]:
    """Yield the flags of a run but those of its model, a flag a line; bits of `read_megatron`."""
    for name, value in (
        ("num-layers", command.num_layers),
        ("seq-length", command.sequence_length),
        ("micro-batch-size", command.micro_batch_size),
        ("global-batch-size", command.global_batch_size),
        ("tensor-model-parallel-size", command.tensor),
        ("pipeline-model-parallel-size", command.pipeline),
        ("context-parallel-size", command.context),
        ("expert-model-parallel-size", command.expert),
    ):
        yield f"--{name} {value}"
    if command.pipeline > 1:
        yield f"--pipeline-model-parallel-layout {layout_text(command.stage_layers)}"
    if command.group_size is not None:
        yield f"--microbatch-group-size-per-virtual-pipeline-stage {command.group_size}"
    if command.optimiser_instances > 1:
        yield f"--num-distributed-optimizer-instances {command.optimiser_instances}"
    for flag, is_given in (
        ("expert-tensor-parallel-size 1", command.whole_experts),
        ("sequence-parallel", command.sequence_parallel),
        ("use-tp-pp-dp-mapping", command.replica_order),
        ("use-distributed-optimizer", command.shards_optimiser),
        ("overlap-grad-reduce", command.overlaps_gradients),
        ("grad-reduce-in-bf16", command.gradient_precision == "bf16"),
        ("accumulate-allreduce-grads-in-fp32", command.gradient_precision == "fp32"),
        ("attention-backend flash", command.attention == "flash"),
        ("attention-backend unfused", command.attention == "plain"),
        ("bf16", True),
    ):
        if is_given:
            yield f"--{flag}"
    yield from _RECOMPUTATION_LINES[command.recomputation]
    yield from _PRECISION_LINES[command.precision]


def layout_text(stage_layers: Sequence[int]) -> str:
    """Return the layout of stages: ``E`` embedding, ``t`` layer, ``L`` loss, bars between stages.

    Examples
    --------
    >>> layout_text((3, 1, 2))
    'Et*3|t*1|t*2,L'
    """
    return f"E{'|'.join(f't*{layers}' for layers in stage_layers)},L"


def model_lines(own: Architecture, num_layers: int, sequence_length: int) -> Iterator[str]:
    """Yield the flags of a model but the number of its layers.

    Raises
    ------
    ValueError
        If Megatron-LM's flags, as they are written here, do not say a part of it.
    """
    _check_parts(own, sequence_length)
    yield f"--hidden-size {own.hidden_size}"
    yield f"--num-attention-heads {own.num_heads}"
    yield f"--ffn-hidden-size {own.ffn_size}"
    yield f"--vocab-size {own.vocabulary_size}"
    yield "--make-vocab-size-divisible-by 1"
    yield f"--max-position-embeddings {own.num_positions or sequence_length}"
    yield f"--position-embedding-type {'learned_absolute' if own.num_positions else 'rope'}"
    yield f"--normalization {'LayerNorm' if own.adds_bias('norm') else 'RMSNorm'}"
    if own.num_key_value_heads != own.num_heads:
        yield "--group-query-attention"
        yield f"--num-query-groups {own.num_key_value_heads}"
    if own.head_size is not None:
        yield f"--kv-channels {own.head_size}"
    for flag, is_given in (
        ("swiglu", own.gated_ffn),
        ("untie-embeddings-and-output-weights", not own.tied_embeddings),
        ("disable-bias-linear", not own.adds_bias("ffn")),
        ("add-qkv-bias", own.adds_bias("qkv") and not own.adds_bias("ffn")),
        ("qk-layernorm", own.qk_norm),
    ):
        if is_given:
            yield f"--{flag}"
    yield from _latent_lines(own)
    yield from _expert_lines(own, num_layers)


def _check_parts(own: Architecture, sequence_length: int) -> None:
    biases = {part for part in ("qkv", "output", "ffn") if own.adds_bias(part)}
    for field, is_other in (
        ("num_norms other than 2", own.num_norms != 2),
        ("whole_qk_norm", own.whole_qk_norm),
        ("attention_sinks", own.attention_sinks),
        ("an attention_window within a sequence", (own.attention_window or inf) < sequence_length),
        ("experts.shared_scale", own.experts is not None and own.experts.shared_scale),
        ("biases of some parts", biases not in (set(), {"qkv"}, {"qkv", "output", "ffn"})),
    ):
        if is_other:
            raise ValueError(
                f"Megatron-LM: flags are written for models without {field}; {own.name} has it"
            )


def _latent_lines(own: Architecture) -> Iterator[str]:
    latent = own.latent_attention
    if latent is None:
        return
    yield "--multi-latent-attention"
    if latent.query_rank is not None:
        yield f"--q-lora-rank {latent.query_rank}"
    yield f"--kv-lora-rank {latent.key_value_rank}"
    yield f"--qk-head-dim {latent.plain_head_size}"
    yield f"--qk-pos-emb-head-dim {latent.rotary_head_size}"
    yield f"--v-head-dim {latent.value_head_size}"


def _expert_lines(own: Architecture, num_layers: int) -> Iterator[str]:
    experts = own.experts
    if experts is None:
        return
    yield f"--num-experts {experts.num_experts}"
    yield f"--moe-router-topk {experts.experts_per_token}"
    yield f"--moe-ffn-hidden-size {experts.expert_ffn_size}"
    yield "--moe-token-dispatcher-type alltoall"
    if experts.shared_ffn_size:
        yield f"--moe-shared-expert-intermediate-size {experts.shared_ffn_size}"
    if experts.router_bias:
        yield "--moe-router-score-function sigmoid"
        yield "--moe-router-enable-expert-bias"
    if experts.dense_layers:
        runs = groupby(map(own.is_sparse, range(num_layers)))
        pattern = "+".join(f"[{int(sparse)}]*{len(list(run))}" for sparse, run in runs)
        yield f"--moe-layer-freq {pattern}"
