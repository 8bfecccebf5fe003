"""Number of examples a property is tried on: a sample in each run of the tests, more in a soak."""

import os

from hypothesis import settings

ORDINARY = 100
"""Examples of a property without a number of its own, in an ordinary run."""

SOAK = int(os.environ.get("EXAMPLES", "40000"))
"""The same in a soak; see the Makefile."""


def examples(ordinary: int) -> int:
    """Number of examples of a property that gets ``ordinary`` ones in an ordinary run."""
    return max(1, ordinary * settings.default.max_examples // ORDINARY)
