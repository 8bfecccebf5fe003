"""A small Llama in stages: layers by their numbers, equal in whichever process they are made."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN, HEADS, INNER, VOCABULARY = 32, 2, 64, 128
SEQUENCE, SEQUENCES = 24, 2
"""Tokens of a sequence, and sequences of a microbatch."""

ACTIVATION_VALUES = SEQUENCES * SEQUENCE * HIDDEN
TOKENS = SEQUENCES * SEQUENCE
"""Values of a message, and tokens, of a microbatch."""

_EMBEDDING, _HEAD = -1, -2
"""Numbers of the ends among layers, for their parameters."""


def _parameter(layer: int, place: int, rows: int, columns: int) -> nn.Parameter:
    """Draw a matrix that depends on its layer and place alone."""
    generator = torch.Generator().manual_seed(1_000 * (layer + 2) + place)
    return nn.Parameter(torch.randn(rows, columns, generator=generator) / columns**0.5)


class LlamaLayer(nn.Module):
    """Attention with rotary positions and a gated feed-forward part, each after an RMS norm."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.attended = _parameter(layer, 0, 3 * HIDDEN, HIDDEN)
        self.projected = _parameter(layer, 1, HIDDEN, HIDDEN)
        self.gated = _parameter(layer, 2, 2 * INNER, HIDDEN)
        self.down = _parameter(layer, 3, HIDDEN, INNER)
        self.norms = nn.Parameter(torch.ones(2, HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        """Map activations, shaped (sequences, tokens, hidden)."""
        own = functional.rms_norm(x, (HIDDEN,), self.norms[0]) @ self.attended.T
        query, key, value = own.view(*x.shape[:2], 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(
            _rotate(query), _rotate(key), value, is_causal=True
        )
        x = x + seen.transpose(1, 2).reshape(x.shape) @ self.projected.T
        gate, up = (functional.rms_norm(x, (HIDDEN,), self.norms[1]) @ self.gated.T).chunk(2, -1)
        return x + (functional.silu(gate) * up) @ self.down.T


def _rotate(x: Tensor) -> Tensor:
    """Rotate pairs of values by angles that grow with the position (RoPE)."""
    half = x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(half, device=x.device) / half)
    angles = torch.arange(x.shape[-2], device=x.device)[:, None] * rates
    one, other = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((one * cos - other * sin, one * sin + other * cos), -1)


class LlamaStage(nn.Module):
    """Consecutive layers of the model; the first stage embeds tokens, the last one predicts.

    Of more than ``most_layers`` only the first ones are there.
    """

    def __init__(
        self, first_layer: int, num_layers: int, model_layers: int, most_layers: int
    ) -> None:
        super().__init__()
        self.first_layer, self.last_layer = first_layer, first_layer + num_layers - 1
        numbers = range(first_layer, first_layer + min(num_layers, most_layers))
        self.layers = nn.ModuleList(map(LlamaLayer, numbers))
        is_first, is_last = first_layer == 0, self.last_layer + 1 == model_layers
        self.embedding = _parameter(_EMBEDDING, 0, VOCABULARY, HIDDEN) if is_first else None
        self.head = _parameter(_HEAD, 0, VOCABULARY, HIDDEN) if is_last else None

    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """Map tokens or activations to activations or, in the last stage, to the sum of losses."""
        if self.embedding is not None:
            x = functional.embedding(x, self.embedding)
        for layer in self.layers:
            x = layer(x)
        if self.head is None:
            return x
        logits = functional.rms_norm(x, (HIDDEN,)) @ self.head.T
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")

    def parameters_of(self, layers: Sequence[int]) -> list[nn.Parameter]:
        """Parameters of some layers of the model, those of the ends with the layers next to them.

        Only parameters of this stage are among them.
        """
        found: list[nn.Parameter] = []
        for number, own in enumerate(self.layers):
            if self.first_layer + number in layers:
                found += own.parameters()
        if self.embedding is not None and self.first_layer in layers:
            found.append(self.embedding)
        if self.head is not None and self.last_layer in layers:
            found.append(self.head)
        return found


def text_batch(step: int, microbatch: int) -> tuple[Tensor, Tensor]:
    """Bytes of sums, such as ``7 plus 5 is 12.``, and the bytes that follow each of them."""
    generator = torch.Generator().manual_seed(100_000 * step + microbatch)
    terms = torch.randint(0, 50, (SEQUENCES * SEQUENCE, 2), generator=generator).tolist()
    text = " ".join(f"{one} plus {other} is {one + other}." for one, other in terms).encode()
    tokens = torch.tensor(list(text[: SEQUENCES * (SEQUENCE + 1)])).view(SEQUENCES, SEQUENCE + 1)
    return tokens[:, :-1], tokens[:, 1:]
