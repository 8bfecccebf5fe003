"""Notebooks as tests run them."""

import json
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def run(notebook: Path) -> dict[str, Any]:
    """Execute all code cells in one namespace and return it."""
    namespace: dict[str, Any] = {}
    for number, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            exec(compile(source, f"{notebook.name} cell {number}", "exec"), namespace)
    return namespace
