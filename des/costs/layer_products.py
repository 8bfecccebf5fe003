"""Matrix products and memory traffic of a transformer's layer on one GPU of a tensor group."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from des.job.architecture import Architecture
from des.job.matrices import Matrix, layer_matrices
from des.job.transformer import ACTIVATION_BYTES


class MatrixProduct(NamedTuple):
    """A matrix product, ``rows`` x ``inner`` by ``inner`` x ``columns``, done ``repeats`` times.

    Sizes may be fractions where a group of GPUs does not divide them: the time is that of the
    fullest one's share on average. ``in_bf16``: whatever the precision of passes.
    """

    rows: float
    columns: float
    inner: float
    repeats: float = 1.0
    in_bf16: bool = False

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.repeats * self.rows * self.columns * self.inner

    @property
    def moved_bytes(self) -> float:
        """Both factors read and the product written, each once, in BF16. [bytes]"""
        return self.moved_with(ACTIVATION_BYTES)

    def moved_with(self, factor_bytes: float) -> float:
        """Both factors read, whose elements have that size, and the product written. [bytes]"""
        factors = self.rows * self.inner + self.inner * self.columns
        product = self.rows * self.columns
        return self.repeats * (factor_bytes * factors + ACTIVATION_BYTES * product)

    @property
    def of_left(self) -> "MatrixProduct":
        """The product that gives the gradient of the left factor."""
        return self._replace(columns=self.inner, inner=self.columns)

    @property
    def of_right(self) -> "MatrixProduct":
        """The product that gives the gradient of the right factor."""
        return self._replace(rows=self.inner, inner=self.rows)


class Spread(NamedTuple):
    """GPUs that share a sequence, those that share routed experts, and the load of their fullest.

    The load is in those of the mean; it repeats products, with as many tokens each. Experts are cut
    over the tensor group of each, or with ``whole_experts`` shared by GPUs of any group. With
    ``sequence_parallel`` a tensor group divides norms and residual additions by tokens; else every
    GPU of it does them for all tokens.
    """

    context: int = 1
    expert: int = 1
    expert_skew: float = 1.0
    sequence_parallel: bool = True
    whole_experts: bool = False


NO_SPREAD = Spread()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """Work of one forward pass of one layer on one GPU.

    ``weights`` multiply by weights, ``attention`` are scores and their application to the values;
    ``moved_bytes`` is the traffic of kernels that only read and write, of which ``score_bytes``
    belongs to scores. ``placed_bytes`` is that of further ones, whose gradients move no more than
    they do: queries and keys that are rotated and normed, tokens on their way to experts and back.
    """

    weights: tuple[MatrixProduct, ...]
    attention: tuple[MatrixProduct, ...]
    moved_bytes: float
    score_bytes: float = 0.0
    placed_bytes: float = 0.0


def layer_work(
    architecture: Architecture,
    *,
    batch_size: float,
    sequence: int,
    tensor: int,
    scores: bool,
    spread: Spread = NO_SPREAD,
    layer: int = 0,
) -> LayerWork:
    """Take a layer, by its index, apart into the kernels of one of ``tensor`` GPUs.

    Parameters
    ----------
    batch_size
        Sequences that the GPU works on at a time; a share may be a fraction.
    scores
        Whether scores are written to memory, which a fused (flash) kernel avoids.
    spread
        Spread of sequences and experts over further GPUs, which this one has its part of, and of
        what is between matrix products over the group.

    Notes
    -----
    Matrices next to each other with the same input are one product. Every expert gets an equal part
    of the tokens. Bytes per element, forward: 24 for two norms and two residual additions with
    dropout; a read and a write of the inner activation (three accesses if gated) and 10 per score
    (softmax, mask and dropout), which the group always divides.
    """
    own_sequence = sequence / spread.context
    tokens, heads = batch_size * own_sequence, architecture.num_heads / tensor
    seen = min(sequence, architecture.window_of(layer) or sequence)
    attention = (
        MatrixProduct(own_sequence, seen, architecture.query_head_size, batch_size * heads, True),
        MatrixProduct(own_sequence, architecture.value_head_size, seen, batch_size * heads, True),
    )
    matrices = layer_matrices(architecture, layer)
    inner = sum(
        one.copies_per_token * one.inputs * (spread.expert_skew if one.is_routed else 1)
        for one in matrices
        if one.name in {"down", "expert_down", "shared_down"}
    )
    accesses = 3 if architecture.gated_ffn else 2
    moved = 24.0 * tokens * architecture.hidden_size / (tensor if spread.sequence_parallel else 1)
    moved += ACTIVATION_BYTES * accesses * tokens * inner / tensor
    score_bytes = 10.0 * batch_size * heads * own_sequence * seen if scores else 0.0
    return LayerWork(
        weights=tuple(_products(matrices, tokens, tensor, spread)),
        attention=attention,
        moved_bytes=moved + score_bytes,
        score_bytes=score_bytes,
        placed_bytes=_placed_bytes(architecture, tokens, tensor, spread, layer),
    )


def _placed_bytes(
    architecture: Architecture, tokens: float, tensor: int, spread: Spread, layer: int
) -> float:
    """Traffic of kernels that rotate and norm queries and keys, and that sort tokens by expert.

    Each reads and writes what it places. Without learned positions queries and keys are rotated;
    tokens are sorted before experts and back behind them.
    """
    heads = architecture.num_heads + architecture.num_key_value_heads
    times = int(architecture.num_positions == 0) + int(architecture.qk_norm)
    placed = times * heads * architecture.query_head_size / tensor
    experts = architecture.experts
    if experts is not None and architecture.is_sparse(layer):
        copies = experts.experts_per_token * spread.expert_skew
        share = tensor if spread.sequence_parallel else 1
        placed += 2.0 * copies * architecture.hidden_size / share
    return 2.0 * ACTIVATION_BYTES * tokens * placed


def _products(
    matrices: Iterable[Matrix], tokens: float, tensor: int, spread: Spread
) -> Iterator[MatrixProduct]:
    """Products of tokens with the parts of matrices that one GPU of a group has.

    Of routed experts it has some, with the tokens that all GPUs which share them send there: those
    of their copies, or where experts are whole those that the tensor group divides.
    """
    for (inputs, copies, is_replicated, takes_parts), same in groupby(matrices, key=_kind):
        group = tuple(same)
        outputs = sum(one.outputs for one in group)
        rows, repeats = tokens * group[0].copies_per_token / copies, float(copies)
        share = 1 if is_replicated else tensor
        if group[0].is_routed:
            rows, repeats = rows * spread.expert, repeats / spread.expert * spread.expert_skew
            if spread.whole_experts:
                rows, share = rows / tensor, 1
        in_bf16 = group[0].name == "router"
        if takes_parts:
            yield MatrixProduct(rows, outputs, inputs / share, repeats, in_bf16)
        else:
            yield MatrixProduct(rows, outputs / share, inputs, repeats, in_bf16)


def _kind(matrix: Matrix) -> tuple[int, int, bool, bool]:
    """Inputs, copies, whether every GPU has it whole, and whether the group divides its inputs."""
    return matrix.inputs, matrix.copies, matrix.is_replicated, matrix.takes_parts


def head_work(
    architecture: Architecture, *, batch_size: float, sequence: int, tensor: int
) -> LayerWork:
    """Take the output head and the loss apart: one product, and 8 bytes a logit."""
    tokens, columns = batch_size * sequence, architecture.vocabulary_size / tensor
    product = MatrixProduct(tokens, columns, architecture.hidden_size, in_bf16=True)
    return LayerWork(weights=(product,), attention=(), moved_bytes=8.0 * tokens * columns)
