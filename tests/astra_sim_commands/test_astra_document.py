"""Examples on the page on the ASTRA-sim engine, run."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trust.md"


def test_the_example_prints_what_the_page_says(tmp_path):
    [(program, expected)] = re.findall(
        r"```python\n(.*?)```\n```\n(.*?)```", PAGE.read_text("utf-8"), re.S
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == (expected, "")
