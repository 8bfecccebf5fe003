"""Command lines of Megatron-LM: the flags that say a plan and a job."""

import re
import shlex
from collections.abc import Iterator, Mapping

from agents.trainers.megatron_arguments import MegatronCommand
from des.base.checks import LARGEST_COUNT, prefixed_errors
from des.job.architecture import Architecture
from des.job.precision import Precision
from des.job.transformer import AttentionKernel, Recomputation
from scenarios.iteration.megatron_layout import EvenLayout, layout_layers

_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
_MOST_ROUNDS = 20


def flags_of_text(text: str) -> dict[str, tuple[str, ...]]:
    """Return the values of every ``--flag``, by its name without dashes and with hyphens.

    Lines may go on behind a backslash. Values of shell variables that the text assigns to are put
    in; others stay as they are. Of a flag given twice the last values count, as they do for the
    program.

    Raises
    ------
    ValueError
        If a quotation mark is not closed.

    Examples
    --------
    >>> flags_of_text("TP=8\\nARGS=(--size $TP --use_it) # why\\ntrain.py ${ARGS[@]} --name=a")
    {'size': ('8',), 'use-it': (), 'name': ('a',)}
    """
    variables: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    name = ""
    with prefixed_errors("not readable as a command line: "):
        for word in _words(text):
            assigned = _ASSIGNMENT.fullmatch(word)
            if word.startswith("--"):
                flag, sign, value = word[2:].partition("=")
                name = flag.replace("_", "-")
                found[name] = [value] if sign else []
            elif assigned is not None or not word.strip("();&"):
                name = ""
                if assigned is not None:
                    variables[assigned[1]] = assigned[2]
            elif name:
                found[name].append(word)
    return {
        name: tuple(_with_variables(value, variables) for value in values if value)
        for name, values in found.items()
    }


def _words(text: str) -> Iterator[str]:
    """Words of a text, and those of the flags that a variable holds behind its assignment."""
    words = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="();&")
    words.whitespace_split = True
    for word in words:
        yield word
        assigned = _ASSIGNMENT.fullmatch(word)
        if assigned is not None and assigned[2].lstrip().startswith("--"):
            yield from _words(assigned[2])


def _with_variables(value: str, variables: Mapping[str, str]) -> str:
    """Put in variables that are known, those within their values too."""
    for _ in range(_MOST_ROUNDS):
        put_in = _VARIABLE.sub(lambda one: variables.get(one[1] or one[2], one[0]), value)
        if put_in == value or len(put_in) > 10_000:
            break
        value = put_in
    return value


_UNREAD = (
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
    "hierarchical-context-parallel-sizes",
    "hybrid-override-pattern",
    "mtp-num-layers",
    "no-overlap-p2p-communication",
    "no-overlap-p2p-comm",
    "pipeline-model-parallel-split-rank",
    "rampup-batch-size",
    "use-custom-fsdp",
    "use-megatron-fsdp",
    "use-torch-fsdp2",
)
"""Flags that change the plan, and that are not simulated."""

_NAME = "megatron"


class _Flags:
    """Values of flags by the type that each has."""

    def __init__(self, values: Mapping[str, tuple[str, ...]]) -> None:
        self._values = values

    def count(self, *names: str) -> int | None:
        """Whole number of at least 1 of the first of some flags that is given."""
        for name in names:
            if name not in self._values:
                continue
            text = self.text(name) or ""
            if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= LARGEST_COUNT:
                raise ValueError(f"--{name}: must be a whole number of at least 1; got {text!r}")
            return int(text)
        return None

    def needed(self, *names: str) -> int:
        """Whole number that has to be given."""
        found = self.count(*names)
        if found is None:
            raise ValueError(f"--{names[0]}: must be given, got none")
        return found

    def text(self, name: str) -> str | None:
        """First value of a flag."""
        values = self._values.get(name)
        return None if values is None else (values[0] if values else "")

    def has(self, *names: str) -> bool:
        """Whether one of some flags is given."""
        return any(name in self._values for name in names)


def read_megatron(text: str) -> MegatronCommand:
    """Read a command line of Megatron-LM; flags that say neither plan nor job do not count.

    Raises
    ------
    ValueError
        Naming the flag, what is allowed and what came.
    """
    flags = _Flags(flags_of_text(text))
    for name in _UNREAD:
        if flags.has(name):
            raise ValueError(f"--{name}: must be left out, as it is not simulated; got it")
    num_layers = flags.needed("num-layers")
    pipeline = flags.count("pipeline-model-parallel-size") or 1
    tensor = flags.count("tensor-model-parallel-size") or 1
    expert = flags.count("expert-model-parallel-size") or 1
    started = flags.count("nnodes"), flags.count("nproc-per-node")
    return MegatronCommand(
        tensor=tensor,
        pipeline=pipeline,
        context=flags.count("context-parallel-size") or 1,
        expert=expert,
        whole_experts=_has_whole_experts(flags, tensor, expert),
        micro_batch_size=flags.needed("micro-batch-size"),
        global_batch_size=flags.needed("global-batch-size"),
        sequence_length=flags.needed("seq-length"),
        num_layers=num_layers,
        stage_layers=_stage_layers(flags, num_layers, pipeline),
        group_size=flags.count("microbatch-group-size-per-virtual-pipeline-stage"),
        replica_order=flags.has("use-tp-pp-dp-mapping"),
        num_gpus=None if None in started else (started[0] or 0) * (started[1] or 0),
        optimiser_instances=flags.count("num-distributed-optimizer-instances") or 1,
        shards_optimiser=flags.has("use-distributed-optimizer"),
        sequence_parallel=flags.has("sequence-parallel"),
        overlaps_gradients=flags.has("overlap-grad-reduce"),
        gradient_precision="bf16" if flags.has("grad-reduce-in-bf16") else "fp32",
        recomputation=_recomputation(flags),
        attention=_attention(flags),
        precision=_precision(flags),
        architecture=_architecture(flags, num_layers),
    )


def _has_whole_experts(flags: _Flags, tensor: int, expert: int) -> bool:
    """Whether experts are not cut as other layers are; by default they are."""
    degree = flags.count("expert-tensor-parallel-size") or tensor
    if degree == tensor:
        return False
    if degree != 1 or expert == 1:
        raise ValueError(
            f"--expert-tensor-parallel-size: must be the tensor-parallel size {tensor}, or 1 with "
            f"an --expert-model-parallel-size above 1; got {degree}"
        )
    return True


def _stage_layers(flags: _Flags, num_layers: int, num_ranks: int) -> tuple[int, ...]:
    layout = flags.text("pipeline-model-parallel-layout")
    ends = ("decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers")
    per_stage = flags.count("num-layers-per-virtual-pipeline-stage")
    if layout is not None:
        for name in (*ends, "num-layers-per-virtual-pipeline-stage"):
            if flags.has(name):
                raise ValueError(
                    f"--{name}: must not be given with --pipeline-model-parallel-layout, which "
                    "says it; got both"
                )
        return layout_layers(layout, num_ranks, num_layers)
    chunks = flags.count("num-virtual-stages-per-pipeline-rank") or 1
    if per_stage is not None:
        if num_layers % (num_ranks * per_stage):
            raise ValueError(
                "--num-layers-per-virtual-pipeline-stage: must divide the layers of a rank, "
                f"{num_layers} / {num_ranks}; got {per_stage}"
            )
        chunks = num_layers // (num_ranks * per_stage)
    return EvenLayout(
        num_layers=num_layers,
        num_ranks=num_ranks,
        num_chunks=chunks,
        first=flags.count(ends[0]),
        last=flags.count(ends[1]),
    ).stage_layers()


def _recomputation(flags: _Flags) -> Recomputation:
    granularity = flags.text("recompute-granularity")
    if granularity is None and flags.has("recompute-activations"):
        granularity = "selective"
    if granularity is None:
        return "none" if flags.text("attention-backend") == "unfused" else "flash"
    if granularity == "selective":
        return "selective"
    method = flags.text("recompute-method")
    layers = flags.count("recompute-num-layers") or 1
    if granularity != "full" or method != "uniform" or layers != 1:
        raise ValueError(
            "--recompute-granularity: must be selective, or full with --recompute-method uniform "
            f"and --recompute-num-layers 1; got {granularity}, {method} and {layers}"
        )
    return "full"


def _attention(flags: _Flags) -> AttentionKernel | None:
    """Kernel of attention where the backend says it."""
    backend = flags.text("attention-backend")
    return None if backend in (None, "auto") else "plain" if backend == "unfused" else "flash"


def _precision(flags: _Flags) -> Precision:
    """Format of passes: FP4 has one recipe, FP8 one of blocks that Blackwell scales itself."""
    if flags.has("fp4-format"):
        return "nvfp4"
    if not flags.has("fp8-format"):
        return "bf16"
    return "mxfp8" if flags.text("fp8-recipe") == "mxfp8" else "fp8"


def _architecture(flags: _Flags, num_layers: int) -> Architecture | None:
    """Model of the flags, where they have a hidden size."""
    hidden = flags.count("hidden-size")
    if hidden is None:
        return None
    if flags.has("num-experts", "multi-latent-attention"):
        raise ValueError(
            "--num-experts, --multi-latent-attention: must come with --model, as such a model is "
            "not made of a command line; got them alone"
        )
    heads = flags.needed("num-attention-heads")
    groups = flags.count("num-query-groups") if flags.has("group-query-attention") else None
    gated = flags.has("swiglu")
    usual = 8 * hidden // (3 * 64) * 64 if gated else 4 * hidden
    learned = flags.text("position-embedding-type") in (None, "learned_absolute")
    return Architecture(
        name=_NAME,
        num_layers=num_layers,
        hidden_size=hidden,
        num_heads=heads,
        num_key_value_heads=groups or heads,
        head_size=flags.count("kv-channels"),
        ffn_size=flags.count("ffn-hidden-size") or usual,
        gated_ffn=gated,
        vocabulary_size=flags.needed("vocab-size", "padded-vocab-size"),
        tied_embeddings=not flags.has("untie-embeddings-and-output-weights"),
        num_positions=(flags.count("max-position-embeddings") or 0) if learned else 0,
        biases=() if flags.has("disable-bias-linear") else None,
    )
