"""Workload of one iteration: the model's layers and the microbatches sent through them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from des.base.checks import (
    MOST_ITEMS,
    require_count,
    require_non_negative,
    require_one_of,
    require_positive,
)
from des.job.architecture import Architecture
from des.job.precision import Precision, precision_named
from des.job.transformer import (
    ATTENTION_OF,
    GRADIENT_BYTES_OF,
    OPTIMISER_BYTES,
    WEIGHT_BYTES,
    AttentionKernel,
    GradientPrecision,
    Recomputation,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Work and memory of one layer, per microbatch where it depends on it.

    The backward pass has two halves: the gradient of the layer's input, which travels on, and that
    of its weights. ``activation_bytes`` are kept from the forward pass to the input gradient,
    ``weight_input_bytes`` from there to the weight gradient. The replicated parts of both are what
    every GPU of a tensor group keeps whole without sequence parallelism. What was not kept is made
    again with ``recomputation_flops`` before the input gradient.
    """

    forward_flops: float
    input_gradient_flops: float
    weight_gradient_flops: float
    num_parameters: float
    activation_bytes: float
    weight_input_bytes: float
    recomputation_flops: float = 0.0
    replicated_activation_bytes: float = 0.0
    replicated_input_bytes: float = 0.0

    def __post_init__(self) -> None:
        require_positive("layer", "forward_flops", self.forward_flops)
        require_positive("layer", "input_gradient_flops", self.input_gradient_flops)
        require_non_negative("layer", "weight_gradient_flops", self.weight_gradient_flops)
        require_non_negative("layer", "num_parameters", self.num_parameters)
        require_non_negative("layer", "activation_bytes", self.activation_bytes)
        require_non_negative("layer", "weight_input_bytes", self.weight_input_bytes)
        require_non_negative("layer", "recomputation_flops", self.recomputation_flops)
        for part, all_of_it in (
            ("replicated_activation_bytes", self.activation_bytes),
            ("replicated_input_bytes", self.weight_input_bytes),
        ):
            value = getattr(self, part)
            require_non_negative("layer", part, value)
            if value > all_of_it:
                raise ValueError(
                    f"layer: {part} must be at most the {all_of_it!r} bytes that they are a part "
                    f"of, got {value!r}"
                )

    @property
    def backward_flops(self) -> float:
        """FLOPs of both halves of the backward pass, recomputation included."""
        return self.recomputation_flops + self.input_gradient_flops + self.weight_gradient_flops

    @property
    def useful_flops(self) -> float:
        """FLOPs of all passes, recomputation left out."""
        return self.forward_flops + self.input_gradient_flops + self.weight_gradient_flops


class SumsBefore(NamedTuple):
    """Sums of figures over all layers before each one; the last item is the sum of all."""

    forward_flops: tuple[float, ...]
    backward_flops: tuple[float, ...]
    input_gradient_flops: tuple[float, ...]
    weight_gradient_flops: tuple[float, ...]
    num_parameters: tuple[float, ...]
    activation_bytes: tuple[float, ...]
    weight_input_bytes: tuple[float, ...]
    replicated_activation_bytes: tuple[float, ...]
    replicated_input_bytes: tuple[float, ...]


def total(sums_before: Sequence[float], first_layer: int, num_layers: int) -> float:
    """Sum of a figure over layers in a row.

    Exact for whole numbers as long as the sum over the model is below 2**53; else rounded as that
    one is.

    Examples
    --------
    >>> total((0.0, 2.0, 3.0, 7.0), first_layer=1, num_layers=2)
    5.0
    """
    return sums_before[first_layer + num_layers] - sums_before[first_layer]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Sizes of the matrices behind a workload, for layer times that are made from them.

    ``num_layers`` layers of equal times stand for the architecture's own where it is another
    number. A microbatch has ``batch_size`` sequences of ``sequence`` tokens. ``attention`` is None
    for the kernel that the recomputation has by default, see `ATTENTION_OF`.
    """

    architecture: Architecture
    num_layers: int
    batch_size: float
    sequence: int
    recomputation: Recomputation
    attention: AttentionKernel | None = None

    @property
    def attention_kernel(self) -> AttentionKernel:
        """Kernel of attention."""
        return self.attention or ATTENTION_OF[self.recomputation]


def _of_layers(figure: Callable[[Layer], float]) -> "cached_property[tuple[float, ...]]":
    """Figure of each layer of a workload, in their order."""
    return cached_property(lambda workload: tuple(map(figure, workload.layers)))


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One training iteration of one model: layers in order, each run for every microbatch.

    ``message_bytes`` crosses every stage boundary per microbatch: the activation on the way
    forward, its gradient on the way back. ``shape`` is known where an architecture is. Gradients of
    parameters are kept, and summed up over replicas, in ``gradient_precision``; passes multiply in
    ``precision``.
    """

    name: str
    layers: tuple[Layer, ...]
    num_microbatches: int
    tokens_per_microbatch: int
    message_bytes: float
    shape: ModelShape | None = None
    gradient_precision: GradientPrecision = "bf16"
    precision: Precision = "bf16"

    def __post_init__(self) -> None:
        owner = f"workload {self.name}"
        precision_named(owner, self.precision)
        require_one_of(owner, "gradient_precision", self.gradient_precision, GRADIENT_BYTES_OF)
        if not self.layers:
            raise ValueError(f"{owner}: layers must hold at least one layer, got none")
        require_count(owner, "num_microbatches", self.num_microbatches, MOST_ITEMS)
        require_count(owner, "tokens_per_microbatch", self.tokens_per_microbatch)
        require_non_negative(owner, "message_bytes", self.message_bytes)

    @property
    def num_layers(self) -> int:
        """Number of layers, L."""
        return len(self.layers)

    @property
    def gradient_bytes(self) -> int:
        """Size of one parameter's gradient, kept and on the wire. [bytes]"""
        return GRADIENT_BYTES_OF[self.gradient_precision]

    @property
    def state_bytes(self) -> int:
        """Weight, gradient and optimiser's state of one parameter. [bytes]"""
        return WEIGHT_BYTES + self.gradient_bytes + OPTIMISER_BYTES

    forward_flops = _of_layers(attrgetter("forward_flops"))
    """Forward FLOPs of each layer for one microbatch."""
    backward_flops = _of_layers(attrgetter("backward_flops"))
    """Backward FLOPs of each layer for one microbatch."""
    input_gradient_flops = _of_layers(
        lambda layer: layer.recomputation_flops + layer.input_gradient_flops
    )
    """FLOPs up to the input gradient of each layer for one microbatch, recomputation first."""
    weight_gradient_flops = _of_layers(attrgetter("weight_gradient_flops"))
    """FLOPs of the weight gradient of each layer for one microbatch."""
    num_parameters = _of_layers(attrgetter("num_parameters"))
    """Parameters of each layer."""
    activation_bytes = _of_layers(attrgetter("activation_bytes"))
    """Bytes each layer keeps for one microbatch from its forward to its backward pass."""
    weight_input_bytes = _of_layers(attrgetter("weight_input_bytes"))
    """The part of it that each layer keeps from its input gradient to its weight gradient."""
    replicated_activation_bytes = _of_layers(attrgetter("replicated_activation_bytes"))
    """Part of each layer's activations that tensor parallelism alone does not split."""
    replicated_input_bytes = _of_layers(attrgetter("replicated_input_bytes"))
    """Part of each layer's weight inputs that tensor parallelism alone does not split."""

    @cached_property
    def sums_before(self) -> SumsBefore:
        """Sums over layers from the first one on, for `total`."""
        figures = (getattr(self, name) for name in SumsBefore._fields)
        return SumsBefore(*(tuple(accumulate(figure, initial=0.0)) for figure in figures))

    @cached_property
    def flops_per_iteration(self) -> float:
        """Useful FLOPs of all layers and microbatches, forward and backward."""
        return self.num_microbatches * sum(layer.useful_flops for layer in self.layers)

    @property
    def tokens_per_iteration(self) -> int:
        """Tokens trained by one iteration."""
        return self.num_microbatches * self.tokens_per_microbatch
