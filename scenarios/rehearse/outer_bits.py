"""Values in 4, 8, 16 or 32 bits: bytes of a message, and back."""

import torch
from torch import Tensor

ALLOWED_BITS = (4.0, 8.0, 16.0, 32.0)
_HEADER = 4
"""Bytes of the scale of a message of whole numbers."""


def encoded_bytes(num_values: int, bits: float) -> int:
    """Size of a message."""
    return _HEADER * (bits < 16.0) + -(-int(num_values * bits) // 8)


def pack_values(values: Tensor, bits: float) -> Tensor:
    """Return the bytes of float32 values: as they are, in BF16, or as multiples of a scale."""
    if bits == 32.0:
        return values.contiguous().view(torch.uint8).clone()
    if bits == 16.0:
        return values.bfloat16().contiguous().view(torch.uint8)
    most = 7 if bits == 4.0 else 127
    scale = (values.abs().max() if values.numel() else values.new_zeros(())) / most
    whole = torch.round(values / scale) if scale else torch.zeros_like(values)
    numbers = whole.clamp(-most, most).to(torch.int8).view(torch.uint8)
    if bits == 4.0:
        numbers = torch.cat((numbers, numbers.new_zeros(numbers.numel() % 2))) & 15
        numbers = numbers[::2] | (numbers[1::2] << 4)
    return torch.cat((scale.reshape(1).view(torch.uint8), numbers))


def unpack_values(content: Tensor, num_values: int, bits: float) -> Tensor:
    """Return the float32 values that bytes hold.

    Examples
    --------
    >>> values = torch.tensor([7.0, -3.0, 0.0])
    >>> unpack_values(pack_values(values, 4.0), 3, 4.0).tolist()
    [7.0, -3.0, 0.0]
    """
    if bits == 32.0:
        return content.view(torch.float32)
    if bits == 16.0:
        return content.view(torch.bfloat16).float()
    scale, numbers = content[:_HEADER].clone().view(torch.float32), content[_HEADER:]
    if bits == 4.0:
        halves = torch.stack((numbers & 15, numbers >> 4), 1).flatten()[:num_values].to(torch.int8)
        return (halves - 16 * (halves > 7).to(torch.int8)).float() * scale
    return numbers.clone().view(torch.int8).float() * scale
