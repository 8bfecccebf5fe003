"""Notebooks run from top to bottom, and are kept without their outputs."""

import json

import pandas as pd
import pytest
from notebook_runs import NOTEBOOKS, run


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
