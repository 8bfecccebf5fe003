"""Flags that several commands have mean the same in each: found among all classes of settings."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("agents", "calibration", "scenarios")
KINDS = {
    "gpus": {"int", "str"},  # str: auto, or a number of GPUs, of a cluster's node
    "gpu_numbers": {"tuple[int, ...]", "tuple[int, ...] | None"},
    "servers": {"int"},
    "servers_file": {"Path | None"},
    "model": {"str", "str | None", "tuple[str, ...]"},
    "gpu": {"str | None", "tuple[str, ...]"},
}


@pytest.fixture(scope="module")
def flags():
    """Kinds and texts of all flags by name, from calls of ``option`` and ``required``."""
    found = defaultdict(list)
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        text = path.read_text(encoding="utf-8")
        if "option(" in text or "required(" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
                    called = ast.unparse(node.value.func)
                    if called in ("option", "required"):
                        text = ast.unparse(node.value)
                        found[ast.unparse(node.target)].append((ast.unparse(node.annotation), text))
    return found


@pytest.mark.parametrize("name", KINDS)
def test_a_flag_of_several_commands_has_one_meaning(name, flags):
    assert {kind for kind, _ in flags[name]} <= KINDS[name]
    assert flags[name]


def test_a_model_is_one_of_layers_and_a_gpu_one_of_devices(flags):
    assert not [text for _, text in flags["model"] if "GPU" in text]
    assert all("GPU" in text for _, text in flags["gpu"])
