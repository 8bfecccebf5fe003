"""The site: every page of the documentation has a place, every link leads somewhere."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import needs_axe, needs_chromium, opened, violations

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    find_spec("sphinx") is None, reason="no Sphinx; pip install 'eastwest[docs]'"
)
