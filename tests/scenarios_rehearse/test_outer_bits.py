"""Values in few bits: sizes of messages, errors of at most half a step."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scenarios.rehearse.outer_bits import (
    ALLOWED_BITS,
    encoded_bytes,
    pack_values,
    unpack_values,
)

VALUES = st.lists(st.floats(-1e3, 1e3, width=32), max_size=40)
STEP = {4.0: 1 / 7, 8.0: 1 / 127, 16.0: 2**-7, 32.0: 0.0}
"""Twice the largest error over the largest value."""


@pytest.mark.parametrize("bits", ALLOWED_BITS)
@given(values=VALUES)
def test_values_come_back_within_half_a_step(bits, values):
    own = torch.tensor(values, dtype=torch.float32)
    content = pack_values(own, bits)
    found = unpack_values(content, own.numel(), bits)

    assert content.dtype == torch.uint8
    assert content.numel() == encoded_bytes(own.numel(), bits)
    largest = float(own.abs().max()) if values else 0.0
    assert bool(((found - own).abs() <= 0.501 * STEP[bits] * largest).all())


@pytest.mark.parametrize("bits", ALLOWED_BITS)
def test_what_was_read_is_written_as_it_was(bits):
    """A part that goes round the ring twice keeps its bits."""
    own = torch.linspace(-1.0, 2.0, 9)
    once = unpack_values(pack_values(own, bits), 9, bits)

    assert torch.equal(unpack_values(pack_values(once, bits), 9, bits), once)
