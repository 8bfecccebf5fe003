"""Notebooks run from top to bottom, and are kept without their outputs."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))


def run(notebook: Path) -> dict[str, Any]:
    """Execute all code cells in one namespace and return it."""
    namespace: dict[str, Any] = {}
    for number, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            exec(compile(source, f"{notebook.name} cell {number}", "exec"), namespace)
    return namespace


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook):
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_the_first_steps_show_that_exact_is_fastest_and_waiting_costs():
    namespace = run(NOTEBOOKS[0].with_name("first_steps.ipynb"))
    comparison, bubbles = namespace["comparison"], pd.DataFrame(namespace["rows"])

    assert comparison["mean"].idxmin() == "exact"
    assert len(bubbles) == 8 * len(comparison)
    assert namespace["result"].bubble_fraction > 2 / 34
