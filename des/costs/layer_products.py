"""Matrix products and memory traffic of a transformer's layer on one GPU of a tensor group."""

from dataclasses import dataclass
from typing import NamedTuple

from des.job.transformer import ACTIVATION_BYTES, Architecture


class MatrixProduct(NamedTuple):
    """A matrix product, ``rows`` x ``inner`` by ``inner`` x ``columns``, done ``repeats`` times.

    Sizes may be fractions where a group of GPUs does not divide them: the time is that of the
    fullest one's share on average.
    """

    rows: float
    columns: float
    inner: float
    repeats: float = 1.0

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.repeats * self.rows * self.columns * self.inner

    @property
    def moved_bytes(self) -> float:
        """Both factors read and the product written, each once. [bytes]"""
        entries = self.rows * self.inner + self.inner * self.columns + self.rows * self.columns
        return ACTIVATION_BYTES * self.repeats * entries

    @property
    def of_left(self) -> "MatrixProduct":
        """The product that gives the gradient of the left factor."""
        return MatrixProduct(self.rows, self.inner, self.columns, self.repeats)

    @property
    def of_right(self) -> "MatrixProduct":
        """The product that gives the gradient of the right factor."""
        return MatrixProduct(self.inner, self.columns, self.rows, self.repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """Work of one forward pass of one layer on one GPU.

    ``weights`` multiply by weights, ``attention`` are scores and their application to the values;
    ``moved_bytes`` is the traffic of all kernels that only read and write.
    """

    weights: tuple[MatrixProduct, ...]
    attention: tuple[MatrixProduct, ...]
    moved_bytes: float


def layer_work(
    architecture: Architecture, *, batch_size: float, sequence: int, tensor: int, scores: bool
) -> LayerWork:
    """Take a layer apart into the kernels of one of ``tensor`` GPUs.

    Parameters
    ----------
    batch_size
        Sequences that the GPU works on at a time; a share may be a fraction.
    scores
        Whether scores are written to memory, which a fused (flash) kernel avoids.

    Notes
    -----
    Bytes per element, forward: 24 for two norms and two residual additions with dropout, which
    every GPU of the group does for all tokens; a read and a write of the inner activation (three
    accesses if gated) and 10 per score (softmax, mask and dropout), which the group divides.
    """
    tokens, hidden = batch_size * sequence, architecture.hidden_size
    head_size = hidden // architecture.num_heads
    heads = architecture.num_heads / tensor
    query, key_value = hidden / tensor, architecture.key_value_size / tensor
    inner = architecture.ffn_size / tensor
    num_inputs = 2 if architecture.gated_ffn else 1
    weights = (
        MatrixProduct(tokens, query + 2.0 * key_value, hidden),
        MatrixProduct(tokens, hidden, query),
        MatrixProduct(tokens, num_inputs * inner, hidden),
        MatrixProduct(tokens, hidden, inner),
    )
    attention = (
        MatrixProduct(sequence, sequence, head_size, batch_size * heads),
        MatrixProduct(sequence, head_size, sequence, batch_size * heads),
    )
    moved = 24.0 * tokens * hidden + ACTIVATION_BYTES * (num_inputs + 1) * tokens * inner
    if scores:
        moved += 10.0 * batch_size * heads * sequence * sequence
    return LayerWork(weights=weights, attention=attention, moved_bytes=moved)


def head_work(
    architecture: Architecture, *, batch_size: float, sequence: int, tensor: int
) -> LayerWork:
    """Take the output head and the loss apart: one product, and 8 bytes a logit."""
    tokens, columns = batch_size * sequence, architecture.vocabulary_size / tensor
    product = MatrixProduct(tokens, columns, architecture.hidden_size)
    return LayerWork(weights=(product,), attention=(), moved_bytes=8.0 * tokens * columns)
