"""What is trained in one iteration: the model's layers and the microbatches sent through them."""

from dataclasses import dataclass
from functools import cached_property

from des.checks import MOST_ITEMS, require_count, require_non_negative, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Work and memory of one layer, per microbatch where it depends on it."""

    forward_flops: float
    backward_flops: float
    num_parameters: float
    activation_bytes: float

    def __post_init__(self) -> None:
        require_positive("layer", "forward_flops", self.forward_flops)
        require_positive("layer", "backward_flops", self.backward_flops)
        require_non_negative("layer", "num_parameters", self.num_parameters)
        require_non_negative("layer", "activation_bytes", self.activation_bytes)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One training iteration of one model: layers in order, each run for every microbatch.

    ``message_bytes`` crosses every stage boundary per microbatch: the activation on the way
    forward, its gradient on the way back.
    """

    name: str
    layers: tuple[Layer, ...]
    num_microbatches: int
    tokens_per_microbatch: int
    message_bytes: float

    def __post_init__(self) -> None:
        owner = f"workload {self.name}"
        if not self.layers:
            raise ValueError(f"{owner}: layers must hold at least one layer, got none")
        require_count(owner, "num_microbatches", self.num_microbatches, MOST_ITEMS)
        require_count(owner, "tokens_per_microbatch", self.tokens_per_microbatch)
        require_non_negative(owner, "message_bytes", self.message_bytes)

    @property
    def num_layers(self) -> int:
        """Number of layers, L."""
        return len(self.layers)

    @cached_property
    def forward_flops(self) -> tuple[float, ...]:
        """Forward FLOPs of each layer for one microbatch."""
        return tuple(layer.forward_flops for layer in self.layers)

    @cached_property
    def backward_flops(self) -> tuple[float, ...]:
        """Backward FLOPs of each layer for one microbatch."""
        return tuple(layer.backward_flops for layer in self.layers)

    @cached_property
    def num_parameters(self) -> tuple[float, ...]:
        """Parameters of each layer."""
        return tuple(layer.num_parameters for layer in self.layers)

    @cached_property
    def activation_bytes(self) -> tuple[float, ...]:
        """Bytes each layer keeps for one microbatch between its two passes."""
        return tuple(layer.activation_bytes for layer in self.layers)

    @cached_property
    def flops_per_iteration(self) -> float:
        """Useful FLOPs of all layers and microbatches, forward and backward."""
        return self.num_microbatches * (sum(self.forward_flops) + sum(self.backward_flops))

    @property
    def tokens_per_iteration(self) -> int:
        """Tokens trained by one iteration."""
        return self.num_microbatches * self.tokens_per_microbatch
