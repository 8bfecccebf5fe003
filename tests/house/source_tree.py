"""The modules of the project as trees: who imports whom, and where names are defined."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.passage import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "des": ROOT / "des",
    "astra_sim": ROOT / "astra-sim" / "astra_sim",
    "calibration": ROOT / "calibration",
    "agents": ROOT / "agents",
    "scenarios": ROOT / "scenarios",
}


def name_of(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "astra-sim":
        del parts[0]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Return the files of all modules by dotted name."""
    return {
        name_of(path): path for folder in PACKAGES.values() for path in sorted(folder.rglob("*.py"))
    }


@cache
def nodes_of_file(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree, in the order of `ast.walk`."""
    return tuple(ast.walk(parsed(path)))


def nodes_of(name: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax tree."""
    return nodes_of_file(modules()[name])


def room_of(name: str) -> str:
    """Return the folder of a module as a dotted name."""
    return name if modules()[name].name == "__init__.py" else name.rpartition(".")[0]


@cache
def _passed_on() -> dict[tuple[str, str], tuple[str, str]]:
    """Names that an ``__init__`` passes on, with the module and name that they stand for."""
    return {
        (name, alias.asname or alias.name): (str(node.module), alias.name)
        for name, path in modules().items()
        if path.name == "__init__.py"
        for node in nodes_of(name)
        if isinstance(node, ast.ImportFrom) and node.module in modules()
        for alias in node.names
    }


def imported_modules(name: str) -> Iterator[str]:
    """Yield the modules of the project that a module imports, behind what packages pass on."""
    for node in nodes_of(name):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                target, what = node.module, alias.name
                if f"{target}.{what}" in modules() and (target, what) not in _passed_on():
                    target = f"{target}.{what}"
                while (target, what) in _passed_on():
                    target, what = _passed_on()[target, what]
                if target in modules():
                    yield target


@cache
def room_imports() -> dict[str, dict[str, list[str]]]:
    """Return ``room -> room -> ["module -> module"]``; packages' own ``__init__`` left out."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, path in modules().items():
        if path.name != "__init__.py":
            for target in imported_modules(name):
                if room_of(target) != room_of(name):
                    found[room_of(name)][room_of(target)].append(f"{name} -> {target}")
    return found


def public_definitions(name: str) -> Iterator[str]:
    """Yield the public classes and functions at the top of a module."""
    for node in parsed(modules()[name]).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name
