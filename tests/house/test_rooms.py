"""The nevers of the house: rooms that must not know each other, and things that have one home."""

import ast
import configparser
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from source_tree import (
    PACKAGES,
    ROOT,
    imported_modules,
    modules,
    nodes_of,
    public_definitions,
    room_imports,
)

VALUES = tuple(f"des.{room}" for room in ("world", "job", "plan", "dynamics", "schedules"))
NEVERS = {
    **dict.fromkeys(VALUES, ("des.engine", "des.compiled")),
    "des.program": ("des.engine", "des.compiled", "des.simulation"),
    "des.engine": ("des.compiled", "des.simulation"),
    "des.compiled.kernels": ("des.engine", "des.simulation"),
    "des.training": ("des.compiled",),
    "des.cluster": ("des.compiled",),
    "des.serving": ("des.compiled",),
    "des.devices": ("des.engine",),
    "des.views": ("des.costs",),
    "agents.decision": ("agents.planners", "agents.flat"),
    "agents.trainers": ("agents",),
    "agents.judge": ("agents.planners",),
    "agents.planners": ("agents.replanning", "agents.hi_ppo"),
    "agents.replanning": ("agents.hi_ppo",),
    "agents.ppo": ("agents.flat", "agents.hi_ppo"),
    "agents.flat": ("agents.hi_ppo",),
    "scenarios.frame": ("scenarios.study", "agents.hi_ppo"),
}
TORCH_ROOMS = (
    "agents.ppo",
    "agents.flat",
    "agents.hi_ppo",
    "agents.serving",
    "scenarios.rehearse",
)
SIMPY_ROOMS = ("des.clock", "des.engine", "des.training", "des.cluster", "des.serving")
FACES_FOR_PLANS = {"des.compiled.simulate", "des.compiled.eligibility"}
"""Modules beside those of many plans that are handed a plan; the first one lowers it."""
HEAVY = ("ortools", "pandas", "matplotlib", "torch")
WRITERS_OF_INSTRUCTIONS = {"intrinsic", "cgutils", "lower_builtin", "lower_cast", "_getvalue"}
MOST_FACE_LINES = 30


def is_in(module: str, rooms: tuple[str, ...]) -> bool:
    """Whether a module or room lies in one of some rooms."""
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


@cache
def foreign_imports(module: str) -> set[str]:
    """Top-level packages that a module imports."""
    found: set[str] = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_rooms_form_no_circle():
    graph = {room: set(others) for room, others in room_imports().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
        reasons = [room_imports()[there][here] for here, there in pairwise(circle)]
        pytest.fail(f"circle {' <- '.join(circle)}: {reasons}")


@pytest.mark.parametrize("room", NEVERS)
def test_a_room_never_imports_what_stands_above_it(room):
    broken = [
        reason
        for here, others in room_imports().items()
        if is_in(here, (room,))
        for there, reasons in others.items()
        if is_in(there, NEVERS[room])
        for reason in reasons
    ]
    assert broken == []


def test_engines_run_programs_and_know_no_plan():
    engines = {
        name
        for name in modules()
        if is_in(name, ("des.engine", "des.compiled")) and not is_in(name, ("des.compiled.many",))
    }
    known = ("des.plan.plan", "des.plan.placement", "des.plan.buckets", "des.plan.exchange_steps")
    who = {name for name in engines if not set(known).isdisjoint(imported_modules(name))}

    assert who == FACES_FOR_PLANS


@pytest.mark.parametrize(("library", "rooms"), [("torch", TORCH_ROOMS), ("simpy", SIMPY_ROOMS)])
def test_a_library_stays_in_its_rooms(library, rooms):
    users = {name for name in modules() if library in foreign_imports(name)}
    assert {name for name in users if not is_in(name, rooms)} == set()


def test_protected_attributes_are_used_by_their_owner_alone():
    """Outside `des.clock`, which says why, ``x._y`` is of ``self``, ``cls`` or the same module."""
    broken = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name in modules()
        if name != "des.clock"
        for node in nodes_of(name)
        if isinstance(node, ast.Attribute)
        and re.fullmatch(r"_[^_].*", node.attr)
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
        and node.attr not in protected_definitions(name)
    ]
    assert broken == []


def writes_instructions(module: str) -> bool:
    """Whether a module uses what Numba and llvmlite have to write LLVM's instructions by hand."""
    names: set[str] = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.name.split(".")[-1] for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return "llvmlite" in foreign_imports(module) or bool(names & WRITERS_OF_INSTRUCTIONS)


def test_hand_written_ir_lives_in_at_most_one_module_and_llvmlite_is_declared():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    declared = config["options"]["install_requires"].split()
    importers = {name for name in modules() if "llvmlite" in foreign_imports(name)}

    assert len({name for name in modules() if writes_instructions(name)}) <= 1
    assert not importers or "llvmlite" in declared


@cache
def protected_definitions(name: str) -> frozenset[str]:
    """Protected attributes that a module defines, and those of named tuples."""
    found = {"_replace", "_asdict", "_fields", "_make"}
    for node in nodes_of(name):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            found.add(node.attr)
    return frozenset(found)


def protocol_names() -> set[str]:
    """Names that several modules define on purpose, with the reason beside each in the list."""
    lines = (Path(__file__).parent / "protocol_names.txt").read_text(encoding="utf-8").splitlines()
    return {line.split(":")[0].strip() for line in lines if ":" in line} | {"main", "parser"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_name_has_one_home_inside_a_package(package):
    homes = defaultdict(list)
    for name in modules():
        if is_in(name, (package,)):
            for what in public_definitions(name):
                homes[what].append(name)
    twice = {what: where for what, where in homes.items() if len(where) > 1}

    assert {what: where for what, where in twice.items() if what not in protocol_names()} == {}


def test_every_public_definition_is_used_by_more_than_tests():
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules().items()}
    declared = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    words = Counter(word for text in texts.values() for word in set(re.findall(r"\w+", text)))
    lonely = [
        f"{name}:{what}"
        for name in modules()
        for what in public_definitions(name)
        if words[what] == 1
        and len(re.findall(rf"\b{what}\b", texts[name])) == 1
        and not re.search(rf"\b{what}\b", declared)
    ]
    assert lonely == []


def test_importing_des_loads_nothing_heavy():
    code = f"import sys, des; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout.strip() == "[]"


def test_packages_declared_are_those_on_disk():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    declared = config["options"]["packages"].split()

    assert sorted(declared) == sorted({".".join(name) for name in packages_on_disk()})


def packages_on_disk() -> list[tuple[str, ...]]:
    """Folders that hold modules, as parts of dotted names."""
    found = []
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            found.append((package, *path.parent.relative_to(folder).parts))
    return found


def test_the_top_of_scenarios_holds_faces_only():
    for path in (ROOT / "scenarios").glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_FACE_LINES, path.name
