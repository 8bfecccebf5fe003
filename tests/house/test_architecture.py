"""Imports allowed between packages, and lengths of modules, read off the source."""

import ast
import runpy
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from source_tree import ROOT, nodes_of_file

SOURCES = {
    "des": ROOT / "des",
    "astra_sim": ROOT / "astra-sim" / "astra_sim",
    "calibration": ROOT / "calibration",
    "agents": ROOT / "agents",
    "scenarios": ROOT / "scenarios",
}
MAY_IMPORT = {
    "des": {"des"},
    "astra_sim": {"astra_sim"},
    "calibration": {"calibration", "des", "astra_sim"},
    "agents": {"agents", "des"},
    "scenarios": set(SOURCES),
}
ONLY_IN = {"simpy": ("des",), "torch": ("agents", "scenarios")}
"""Packages with rooms for a library; `test_rooms` names the rooms."""
MAX_LINES = 300
MAX_FUNCTION_LINES = 40
TESTS = sorted((ROOT / "tests").rglob("*.py"))
NEEDS = runpy.run_path(str(ROOT / "conftest.py"))["NEEDS"]
MODULES = [
    (package, path) for package, folder in SOURCES.items() for path in sorted(folder.rglob("*.py"))
]


def found_in_modules(look: Callable[[str, Path], object]) -> dict[str, object]:
    """What is found in modules, by their paths, where anything is."""
    found = {str(path.relative_to(ROOT)): look(package, path) for package, path in MODULES}
    return {path: what for path, what in found.items() if what}


def imports(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """All import statements among nodes of a syntax tree."""
    return (node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


@cache
def imported_packages(package: str, path: Path) -> set[str]:
    """Top-level packages that a module imports; a relative import is one of its own package."""
    packages: set[str] = set()
    for node in imports(nodes_of_file(path)):
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        else:
            packages.add(package if node.level else str(node.module).split(".")[0])
    return packages


@pytest.mark.parametrize("package", SOURCES)
def test_every_package_has_modules_to_check(package):
    assert (SOURCES[package] / "__init__.py").is_file()


def test_imports_point_one_way():
    """No package imports one above it; scenarios are on top."""

    def above(package: str, path: Path) -> set[str]:
        ours = imported_packages(package, path) & set(SOURCES)
        return ours - MAY_IMPORT[package]

    assert found_in_modules(above) == {}


def test_simpy_stays_in_des_and_torch_in_agents_and_scenarios():
    def foreign(package: str, path: Path) -> set[str]:
        packages = imported_packages(package, path)
        return {
            name for name, owners in ONLY_IN.items() if name in packages and package not in owners
        }

    assert found_in_modules(foreign) == {}


@pytest.mark.parametrize("extra", NEEDS)
def test_extras_are_imported_by_few(extra):
    users = {
        str(path.relative_to(ROOT))
        for package, folder in SOURCES.items()
        for path in folder.rglob("*.py")
        if extra in imported_packages(package, path)
    }

    assert users == set(NEEDS[extra])


def test_no_function_imports():
    def inner(package: str, path: Path) -> list[str]:
        functions = (
            node
            for node in nodes_of_file(path)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        return [
            f"line {node.lineno}" for function in functions for node in imports(ast.walk(function))
        ]

    assert found_in_modules(inner) == {}


def test_no_module_is_too_long():
    def too_long(package: str, path: Path) -> int:
        num_lines = len(path.read_text(encoding="utf-8").splitlines())
        return num_lines if num_lines > MAX_LINES else 0

    assert found_in_modules(too_long) == {}


def test_no_module_of_tests_is_too_long():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in TESTS}

    assert {path.name: num for path, num in lines.items() if num > MAX_LINES} == {}


def test_no_function_of_tests_is_too_long():
    functions = {
        f"{path.name}:{node.name}": node.end_lineno - node.lineno + 1
        for path in TESTS
        for node in nodes_of_file(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {name: num for name, num in functions.items() if num > MAX_FUNCTION_LINES} == {}


def test_folders_of_tests_are_named_after_rooms():
    rooms = {
        "_".join((package, *path.parent.relative_to(folder).parts))
        for package, folder in SOURCES.items()
        for path in folder.rglob("*.py")
    }

    assert {path.parent.name for path in TESTS} <= rooms | {"tests", "house", "reliability"}
