"""Number of examples a property is tried on: a sample in each run of the tests, more in a soak."""

import os

from hypothesis import settings

SAMPLE = 15
"""Examples of a property without a number of its own in `make test`."""

SOAK = int(os.environ.get("EXAMPLES", "40000"))
"""The same in a soak; see the Makefile."""

_FULL = 100
"""Number that the numbers of single properties are relative to."""


def examples(full: int) -> int:
    """Number of examples of a property that gets ``full`` where one without a number gets 100."""
    return max(1, full * settings.default.max_examples // _FULL)
