"""Sources keep to the one place where a class of faults is ended."""

import ast
from functools import cache

import pytest
from source_tree import modules, nodes_of

HOMES = {
    "csv.writer": ("des.base.csv_text",),
    "csv.DictWriter": (),
    ".to_csv": ("des.base.csv_text",),
    "ProcessPoolExecutor": (),
    "torch.load": (),
    "pickle.loads": (
        "calibration.reference.serving",
        "scenarios.train.sweep_ray",  # bytes of this run alone, through Ray
    ),
    "pickle.load": (),
    "json.loads": (
        "des.base.strict_json",
        "des.devices.k8s.wire",  # Go's rules of keys; the server bounds the body
        "astra_sim.files.json_fields",
    ),
    "tempfile.gettempdir": ("des.base.private_folder",),
    "signal.signal": (
        "calibration.reference.serving",
        "des.base.interruption",
    ),
}
"""Calls with the only modules that may make them: the others take what those give.

Formulas in CSV, semaphores that a killed pool leaves behind, files that ask for memory or run code,
folders of other users, signals that end a command in a traceback.
"""


@cache
def called(module: str) -> set[str]:
    """Names that a module calls or imports, with what they are attributes of."""
    found: set[str] = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
            if isinstance(node.value, ast.Name):
                found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("name", HOMES)
def test_a_call_that_can_go_wrong_has_one_home(name):
    assert {module for module in modules() if name in called(module)} == set(HOMES[name])
