"""Marks of tests that need a browser."""

from importlib.util import find_spec

import pytest

from bench.browser import CHROMIUM

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium; for example: apt-get install chromium"
)
needs_axe = pytest.mark.skipif(
    find_spec("axe_core_python") is None, reason="no axe; pip install axe-core-python"
)
