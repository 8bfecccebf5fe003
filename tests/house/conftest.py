"""Settings of the tests of the structure."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _syntax_trees_are_no_garbage() -> Iterator[None]:
    """Trees of all modules stay: looking through them for garbage takes longer than making them."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
