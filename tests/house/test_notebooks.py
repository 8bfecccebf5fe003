"""Notebooks run from top to bottom, show pictures, and are kept with outputs that are small."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="no nbformat; pip install nbclient ipykernel")
FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
QUICK = ("first_steps", "robustness")
PICTURES = {
    "anatomy_of_a_bubble": 4,
    "autoscaling": 2,
    "calibration": 1,
    "fidelity": 1,
    "first_steps": 4,
    "from_topology_to_plan": 3,
    "published_and_measured": 2,
    "queue_policies": 1,
    "robustness": 2,
    "which_family_wins_where": 2,
}
"""Pictures that each notebook shows."""
MOST_BYTES = 400_000
STATEMENTS = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)


def pictures(notebook):
    """PNG files among the outputs, as text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [
        output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]


def code_of(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.reads(sys.stdin.read(), 4)
NotebookClient(notebook, timeout=600, resources={"metadata": {"path": sys.argv[1]}}).execute()
sys.stdout.write(nbformat.writes(notebook))
"""
"""Program of a process of its own, as its sockets close when it ends."""


def executed(*names):
    """Run notebooks one after the other in one kernel, which imports what they share once."""
    joined, ends = nbformat.v4.new_notebook(), []
    for name in names:
        for cell in nbformat.read(FOLDER / f"{name}.ipynb", 4).cells:
            cell["id"] = f"{name}-{len(joined.cells)}"
            joined.cells.append(cell)
        joined.cells.append(nbformat.v4.new_code_cell("%reset -f"))
        ends.append(len(joined.cells))
    command = [sys.executable, "-c", EXECUTE, str(FOLDER)]
    text = nbformat.writes(joined)
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    cells = nbformat.reads(run.stdout, 4).cells
    starts = [0, *ends[:-1]]
    return {
        name: nbformat.v4.new_notebook(cells=cells[start:end])
        for name, start, end in zip(names, starts, ends, strict=True)
    }


def test_every_notebook_is_known_and_has_its_pictures():
    assert {path.stem for path in NOTEBOOKS} == set(PICTURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_small_outputs_and_no_errors(path):
    notebook = nbformat.read(path, 4)

    assert len(pictures(notebook)) == PICTURES[path.stem]
    assert path.stat().st_size < MOST_BYTES
    kinds = {output.output_type for cell in notebook.cells for output in cell.get("outputs", ())}
    assert "error" not in kinds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_logic_of_its_own(path):
    """Imports, calls and names for what they return: no loops, branches or functions."""
    for source in code_of(nbformat.read(path, 4)):
        tree = ast.parse(source)
        assert all(isinstance(node, STATEMENTS) for node in tree.body), source


@pytest.mark.skipif(find_spec("nbclient") is None, reason="no nbclient; pip install nbclient")
def test_quick_notebooks_run_and_show_their_pictures():
    for name, notebook in executed(*QUICK).items():
        assert len(pictures(notebook)) == PICTURES[name]


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(set(PICTURES) - set(QUICK)))
def test_long_notebooks_run_and_show_their_pictures(name):
    assert len(pictures(executed(name)[name])) == PICTURES[name]
