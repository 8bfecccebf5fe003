"""The way of a plan through the simulator: ``python -m bench.passage`` prints and counts stays.

A stay is a function, method or property that a plan comes into, counted once for every place that
hands it on: as an argument, in a tuple of arguments, as what a method is called on, or within an
object whose constructor took it. What is worked out from a plan is no plan any more.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
START = "des.simulation.iteration", "simulate"
PLAN = "des.plan.plan", "Plan"
THREE = {"topology", "workload", "plan"}
PRODUCT = ("agents", "astra-sim", "calibration", "des", "scenarios")


class Stay(NamedTuple):
    """A function that a plan comes into, ``depth`` calls away from the start."""

    depth: int
    name: str


class Place(NamedTuple):
    """A function of a module, or a method of a class of it, or a class."""

    module: str
    owner: ast.ClassDef | None
    function: ast.FunctionDef | None = None


def stays_of_plan(start: tuple[str, str] = START) -> list[Stay]:
    """Follow the parameter ``plan`` of a function, in the order in which calls are written."""
    place = _defined(*start)
    if place is None or place.function is None:
        raise ValueError(f"passage: start must be a function of the project, got {start}")
    walk = _Walk()
    walk.enter(place, {"plan"}, ())
    return walk.stays


def takers_of_three() -> list[str]:
    """Functions of the product with parameters named topology, workload and plan."""
    return [
        f"{path.relative_to(ROOT)}: {node.name}"
        for part in PRODUCT
        for path in sorted((ROOT / part).rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef) and set(_parameters(node)) >= THREE
    ]


class _Walk:
    """A walk through all functions that the plan comes into."""

    def __init__(self) -> None:
        self.stays: list[Stay] = []
        self._attributes: defaultdict[ast.ClassDef, set[str]] = defaultdict(set)
        """Attributes that hold the plan, such as ``self._plan``, of objects that took it."""

    def enter(self, place: Place, held: set[str], above: tuple[ast.FunctionDef, ...]) -> None:
        """Note a stay and follow the calls from there; ``held`` are expressions for the plan."""
        function, owner = place.function, place.owner
        if function is None or function in above:
            return
        parts = (place.module, *(() if owner is None else (owner.name,)), function.name)
        self.stays.append(Stay(len(above), ".".join(parts)))
        if owner is not None:
            held = held | self._attributes[owner]
        objects: dict[str, Place] = {}
        for node in _in_order(function):
            if isinstance(node, ast.Assign):
                self._assign(node, place, held, objects)
            elif isinstance(node, ast.Attribute | ast.Call):
                for called, names in self._called(node, place, held, objects):
                    self.enter(called, names, (*above, function))

    def _assign(
        self, node: ast.Assign, place: Place, held: set[str], objects: dict[str, Place]
    ) -> None:
        """Note further names for the plan, and objects that hold it."""
        pairs: list[tuple[ast.expr, ast.expr]] = [(node.targets[0], node.value)]
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
        for target, value in pairs:
            name = ast.unparse(target)
            if _holds(value, held):
                held.add(name)
                if place.owner is not None and name.startswith("self."):
                    self._attributes[place.owner].add(name)
            elif isinstance(value, ast.Call):
                made = _named(place.module, value.func)
                if made is not None and made.function is None and _handed(value, held):
                    objects[name] = made

    def _called(
        self,
        node: ast.Attribute | ast.Call,
        place: Place,
        held: set[str],
        objects: dict[str, Place],
    ) -> Iterator[tuple[Place, set[str]]]:
        """Functions that a node takes the plan into, and the names that it has there."""
        target = node.func if isinstance(node, ast.Call) else node
        if isinstance(node, ast.Call) and ast.unparse(target) == "partial":
            target = node.args[0]
        if isinstance(target, ast.Attribute):
            holder, is_plan = ast.unparse(target.value), _holds(target.value, held)
            known = _defined(*PLAN) if is_plan else objects.get(holder)
            if known is None and holder == "self":
                known = place
            called = None if known is None else _method(known, target.attr)
            if called is None or _is_property(called) == isinstance(node, ast.Call):
                return
            names = {"self"} if is_plan else set[str]()
            if isinstance(node, ast.Call):
                names |= _handed_to(called, node, held)
            if names or holder in objects:
                yield called, names
        elif isinstance(node, ast.Call):
            called = _named(place.module, target)
            if called is not None and called.function is None:
                called = _method(called, "__init__")
            names = set() if called is None else _handed_to(called, node, held)
            if called is not None and names:
                yield called, names


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one, as they are written, values of an assignment before it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign):
            yield from _in_order(child)
            yield child
        else:
            yield child
            yield from _in_order(child)


def _holds(node: ast.expr, held: set[str]) -> bool:
    """Whether an expression is the plan, or a tuple with it."""
    if isinstance(node, ast.Starred):
        return _holds(node.value, held)
    if isinstance(node, ast.Tuple):
        return any(_holds(one, held) for one in node.elts)
    return ast.unparse(node) in held


def _handed(call: ast.Call, held: set[str]) -> bool:
    values = (*call.args, *(one.value for one in call.keywords))
    return any(_holds(one, held) for one in values)


def _handed_to(place: Place, call: ast.Call, held: set[str]) -> set[str]:
    """Parameters of a function that get the plan in a call."""
    assert place.function is not None
    arguments = list(call.args)
    if ast.unparse(call.func) == "partial":
        del arguments[0]
    spread: list[ast.expr] = []
    for one in arguments:
        is_tuple = isinstance(one, ast.Starred) and isinstance(one.value, ast.Tuple)
        spread += one.value.elts if is_tuple else [one]  # type: ignore[attr-defined]
    parameters = _parameters(place.function)[place.owner is not None :]
    found = {name for name, one in zip(parameters, spread, strict=False) if _holds(one, held)}
    return found | {one.arg for one in call.keywords if one.arg and _holds(one.value, held)}


def _parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _is_property(place: Place) -> bool:
    assert place.function is not None
    return any("property" in ast.unparse(one) for one in place.function.decorator_list)


def _method(place: Place, name: str) -> Place | None:
    for node in () if place.owner is None else place.owner.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return Place(place.module, place.owner, node)
    return None


def _named(module: str, node: ast.expr) -> Place | None:
    return _defined(module, node.id) if isinstance(node, ast.Name) else None


@cache
def _defined(module: str, name: str) -> Place | None:
    """Function or class that a name in a module stands for, wherever it is imported from."""
    path = ROOT.joinpath(*module.split("."))
    file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    if not file.exists():
        return None
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _defined(node.module, alias.name)
    for node in parsed(file).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return Place(module, None, node)
        if isinstance(node, ast.ClassDef) and node.name == name:
            return Place(module, node)
    return None


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, which is read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the walk from ``MODULE NAME`` (default: that of `des.simulate`), and both counts."""
    given = sys.argv[1:] if argv is None else argv
    stays = stays_of_plan((given[0], given[1]) if given else START)
    for depth, name in stays:
        print(f"{'  ' * depth}{name}")
    print(f"stays of the plan: {len(stays)}, in {len({name for _, name in stays})} functions")
    print(f"functions that take topology, workload and plan: {len(takers_of_three())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
