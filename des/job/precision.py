"""Number formats of passes: which matrix products they are of, and the size of an element."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, cast

from des.base.checks import require_one_of

Precision = Literal["bf16", "fp8", "mxfp8", "nvfp4"]
"""Format of both factors of the matrix products of linear layers, in all three passes.

As Transformer Engine does it [1]_: attention, router, norms, embedding, head and loss stay in
BF16, as do products, sums, messages, weights and kept activations here; only products and their
factors change. FP8 recipes differ in their scales (of tensors, blocks or rows), not in the peak.

.. [1] NVIDIA, Transformer Engine user guide, "Using FP8 and FP4 with Transformer Engine";
   "Pretraining large language models with NVFP4", arXiv:2509.25149, 2025, which keeps a few
   layers in BF16.
"""

ELEMENT_BYTES: Mapping[Precision, float] = MappingProxyType(
    {"bf16": 2.0, "fp8": 1.0, "mxfp8": 1.0 + 1.0 / 32.0, "nvfp4": 0.5 + 1.0 / 16.0}
)
"""Size of an element with its part of a scale: a byte for 32 elements (OCP Microscaling Formats
1.0), or for 16 in NVFP4. [bytes]
"""


def precision_named(owner: str, name: str) -> Precision:
    """Check the name of a precision.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    require_one_of(owner, "precision", name, ELEMENT_BYTES)
    return cast(Precision, name)
