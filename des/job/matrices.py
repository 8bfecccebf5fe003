"""Weight matrices of a transformer layer, which its parameters and FLOPs are sums over."""

from collections.abc import Iterator
from dataclasses import dataclass

from des.job.architecture import Architecture, LatentAttention, MixtureOfExperts

_INTO_THE_LAYER = frozenset({"output", "down"})
"""Ends of the names of matrices that lead back to the hidden state."""

_REPLICATED = frozenset({"query_down", "key_value_down", "router", "shared_scale"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Weights that tokens are multiplied by, ``inputs x outputs``.

    Each of the routed experts has a copy of its own: ``copies`` are stored, and each token is
    multiplied by ``copies_per_token`` of them.
    """

    name: str
    inputs: int
    outputs: int
    adds_bias: bool = False
    copies: int = 1
    copies_per_token: int = 1

    @property
    def is_replicated(self) -> bool:
        """Whether every GPU of a tensor group has it whole."""
        return self.name in _REPLICATED

    @property
    def takes_parts(self) -> bool:
        """Whether a tensor group divides its inputs; of other divided ones, outputs."""
        return not self.is_replicated and self.name.rsplit("_", 1)[-1] in _INTO_THE_LAYER

    @property
    def is_routed(self) -> bool:
        """Whether the matrix is one of routed experts."""
        return self.name.startswith("expert_")

    @property
    def parameters(self) -> int:
        """Weights and biases of all copies."""
        bias = self.outputs if self.adds_bias else 0
        return self.copies * (self.inputs * self.outputs + bias)

    @property
    def flops_per_token(self) -> int:
        """Two FLOPs for each weight that a token is multiplied by."""
        return 2 * self.copies_per_token * self.inputs * self.outputs


def layer_matrices(architecture: Architecture, layer: int = 0) -> tuple[Matrix, ...]:
    """Matrices of one layer, by its index, in the order in which tokens meet them.

    Without experts all layers are alike.

    Examples
    --------
    >>> from des import ARCHITECTURES
    >>> [matrix.name for matrix in layer_matrices(ARCHITECTURES["llama2_7b"])]
    ['query', 'key', 'value', 'output', 'gate', 'up', 'down']
    """
    if layer not in range(architecture.num_layers):
        raise ValueError(
            f"architecture {architecture.name}: layer must be from 0 to "
            f"{architecture.num_layers - 1}, got {layer!r}"
        )
    latent, experts = architecture.latent_attention, architecture.experts_of(layer)
    attention = (
        _attention(architecture) if latent is None else _latent_attention(architecture, latent)
    )
    if experts is None:
        return (*attention, *_ffn(architecture, architecture.ffn_size))
    return (*attention, *_expert_ffns(architecture, experts))


def _attention(architecture: Architecture) -> Iterator[Matrix]:
    h, bias = architecture.hidden_size, architecture.adds_bias("qkv")
    query = architecture.num_heads * architecture.query_head_size
    key_value = architecture.key_value_size
    yield Matrix(name="query", inputs=h, outputs=query, adds_bias=bias)
    yield Matrix(name="key", inputs=h, outputs=key_value, adds_bias=bias)
    yield Matrix(name="value", inputs=h, outputs=key_value, adds_bias=bias)
    yield Matrix(name="output", inputs=query, outputs=h, adds_bias=architecture.adds_bias("output"))


def _latent_attention(architecture: Architecture, latent: LatentAttention) -> Iterator[Matrix]:
    h, heads = architecture.hidden_size, architecture.num_heads
    query, rank = heads * architecture.query_head_size, latent.key_value_rank
    if latent.query_rank is None:
        yield Matrix(name="query", inputs=h, outputs=query)
    else:
        yield Matrix(name="query_down", inputs=h, outputs=latent.query_rank)
        yield Matrix(name="query_up", inputs=latent.query_rank, outputs=query)
    yield Matrix(name="key_value_down", inputs=h, outputs=rank + latent.rotary_head_size)
    yield Matrix(
        name="key_value_up",
        inputs=rank,
        outputs=heads * (latent.plain_head_size + latent.value_head_size),
    )
    yield Matrix(
        name="output",
        inputs=heads * latent.value_head_size,
        outputs=h,
        adds_bias=architecture.adds_bias("output"),
    )


def _ffn(
    architecture: Architecture, size: int, part: str = "", copies: int = 1, per_token: int = 1
) -> Iterator[Matrix]:
    """Feed-forwards of one inner width; ``part`` begins the names of their matrices."""
    h = architecture.hidden_size
    shapes = {"gate": (h, size)} if architecture.gated_ffn else {}
    shapes |= {"up": (h, size), "down": (size, h)}
    for name, (inputs, outputs) in shapes.items():
        yield Matrix(
            name=part + name,
            inputs=inputs,
            outputs=outputs,
            adds_bias=architecture.adds_bias("ffn"),
            copies=copies,
            copies_per_token=per_token,
        )


def _expert_ffns(architecture: Architecture, experts: MixtureOfExperts) -> Iterator[Matrix]:
    h = architecture.hidden_size
    yield Matrix(
        name="router", inputs=h, outputs=experts.num_experts, adds_bias=experts.router_bias
    )
    yield from _ffn(
        architecture,
        experts.expert_ffn_size,
        "expert_",
        experts.num_experts,
        experts.experts_per_token,
    )
    if experts.shared_ffn_size:
        yield from _ffn(architecture, experts.shared_ffn_size, "shared_")
    if experts.shared_scale:
        yield Matrix(name="shared_scale", inputs=h, outputs=1)
