"""Light imports: importing the simulator loads no library that is slow to load."""

import ast
import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import calibration
import des
from agents.hi_ppo.proposing import SWEEP
from agents.planners.names import PLANNER_NAMES, RULE_NAMES, SCHEDULER_NAMES
from agents.planners.table import PLANNERS
from agents.replanning.table import RULES, SCHEDULERS
from des.base.lazy import LazyModule, lazy_imports
from scenarios.autoscale.command import SUBCOMMANDS as AUTOSCALE_SUBCOMMANDS
from scenarios.cluster.command import TABLE as CLUSTER_SUBCOMMANDS
from scenarios.devices.command import TABLE as SUBCOMMANDS
from scenarios.k8s.command import TABLE as K8S_SUBCOMMANDS
from scenarios.study.ablations.preference import NUM_DRAWN
from scenarios.study.pareto.names import TABLE_NAMES
from scenarios.study.pareto.study import TABLES
from scenarios.study.targets.names import GROUP_NAMES
from scenarios.study.targets.table import GROUPS
from scenarios.train.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "matplotlib",
    "networkx",
    "numba",
    "ortools",
    "pandas",
    "pydantic",
    "scipy",
    "torch",
    "yaml",
}
COMMANDS = [
    *(f"scenarios.{path.stem}" for path in sorted((ROOT / "scenarios").glob("[!_]*.py"))),
    "scenarios.ablations",
    "scenarios.ablations.flat",
    "scenarios.ablations.preference",
    "scenarios.suites",
    "scenarios.job_queue",
    "scenarios.autoscale",
    *(f"scenarios.autoscale {name}" for name in AUTOSCALE_SUBCOMMANDS),
    *(f"scenarios.east_west_train {name}" for name in TASKS),
    "scenarios.cluster",
    *(f"scenarios.cluster {name}" for name in CLUSTER_SUBCOMMANDS.commands),
    "scenarios.devices",
    *(f"scenarios.devices {name}" for name in SUBCOMMANDS.commands),
    "scenarios.k8s",
    *(f"scenarios.k8s {name}" for name in K8S_SUBCOMMANDS.commands),
    "scenarios.reproduce",
    *(
        f"scenarios.reproduce {name}"
        for name in ("zero_bubble", "crosspipe", "diloco", "sailor", "blox")
    ),
    "scenarios.reproduce serving",
    "calibration",
    *(
        f"calibration {name}"
        for name in ("run", "check", "compare", "export", "list", "show", "prune")
    ),
    "agents.decide",
    "agents.serving.decide",
]
_RICH = (
    "scenarios.training_run",
    "scenarios.autoscale speed",
    "scenarios.east_west_train main",
    "calibration run",
)
"""Commands whose helps load nearly all that other helps load."""

_HELPS = """
import contextlib, io, json, os, runpy, sys
import numpy.random, pydantic.main, tyro, yaml

def show(command):
    module, *sys.argv[1:] = *command.split(), "--help"
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            assert not end.code, command
    assert shown.getvalue().startswith("usage: "), command

rich, commands = map(json.loads, sys.argv[1:])
for command in rich:
    show(command)
for command in commands:
    if (child := os.fork()) == 0:
        show(command)
        print(json.dumps([command, sorted(sys.modules)]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, command
"""
"""One process for each command, from one that has shown some helps of many modules.

A slow library that those loaded would be found with every command.
"""

_SHOW = "; import json, sys; print(json.dumps(sorted(sys.modules)))"


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a new Python has after running some code."""
    done = subprocess.run(
        [sys.executable, "-c", code + _SHOW], capture_output=True, text=True, check=True, cwd=ROOT
    )
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("import des", set()),
        ("from des import *", {"pydantic", "yaml"}),  # they check and read files
        ("from des import simulate, Plan, Topology, build_workload", set()),
    ],
)
def test_importing_the_simulator_loads_no_slow_library(code, needed):
    assert loaded_by(code) & HEAVY <= needed


@pytest.fixture(scope="module")
def modules_of_helps():
    """Modules that each command has loaded when its help is shown, by command."""
    done = subprocess.run(
        [sys.executable, "-c", _HELPS, json.dumps(_RICH), json.dumps(COMMANDS)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_loads_no_slow_library(modules_of_helps, command):
    loaded = set(modules_of_helps[command])

    assert "des.base" in loaded
    assert not loaded & (HEAVY - {"pydantic", "yaml"})


def test_names_for_users_are_those_of_what_is_loaded_later():
    assert tuple(PLANNERS) == PLANNER_NAMES
    assert tuple(RULES) == RULE_NAMES
    assert tuple(SCHEDULERS) == SCHEDULER_NAMES
    assert tuple(GROUPS) == GROUP_NAMES
    assert tuple(TABLES) == TABLE_NAMES
    assert SWEEP.num_samples == NUM_DRAWN


@pytest.mark.parametrize("package", [des, calibration])
def test_every_public_name_is_there_and_is_found_where_type_checkers_look(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in ("typing", "des.base.lazy")
        for alias in node.names
    }

    assert set(typed) == set(package.__all__)
    for name, home in typed.items():
        assert getattr(package, name) is getattr(sys.modules[str(home)], name)
    assert set(package.__all__) <= set(dir(package))


def test_a_star_import_gives_every_public_name():
    code = "from des import *; import des; assert set(des.__all__) <= set(globals())"

    loaded_by(code)


def test_rooms_are_attributes_and_unknown_names_are_refused():
    folders = {path.parent.name for path in (ROOT / "des").glob("*/__init__.py")}

    assert {name for name in folders if getattr(des, name).__name__ == f"des.{name}"} == folders
    with pytest.raises(AttributeError, match="module 'des' has no attribute 'simulat'"):
        des.simulat  # type: ignore[attr-defined]  # noqa: B018


def test_a_lazy_module_is_loaded_by_its_first_name():
    module = LazyModule("xml.sax.saxutils")

    assert repr(module) == "<lazy module 'xml.sax.saxutils'>"
    assert module.escape("<") == "&lt;"  # type: ignore[operator]
    with pytest.raises(AttributeError, match="nothing"):
        module.nothing  # noqa: B018


def test_late_imports_are_those_of_the_importer_alone():
    own, other = {"__name__": "own"}, {"__name__": "other"}
    with lazy_imports("own"):
        exec("import colorsys\nfrom xml.sax import saxutils, Nothing", own)
        exec("import colorsys\nfrom xml.sax import saxutils", other)

    assert repr(own["colorsys"]) == "<lazy module 'colorsys'>"
    assert own["saxutils"].escape is other["saxutils"].escape
    assert isinstance(other["colorsys"], ModuleType)
    with pytest.raises(ImportError, match="Nothing"):
        own["Nothing"].field  # noqa: B018


def test_late_imports_end_with_their_block():
    names = {"__name__": "own"}
    with pytest.raises(ZeroDivisionError), lazy_imports("own"):
        exec("1 / 0", names)
    exec("import colorsys", names)

    assert isinstance(names["colorsys"], ModuleType)


@pytest.mark.parametrize("package", ["des", "agents", "calibration", "scenarios"])
def test_modules_of_the_house_are_loaded_late_by_imports(package):
    """So type checkers see them, and who may import whom is checked for them as well."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / package).rglob("*.py")}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text if "LazyModule" in text else "")):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "LazyModule":
                named = node.args[0]
                home = str(named.value).split(".")[0] if isinstance(named, ast.Constant) else ""
                is_own = path == ROOT / "des" / "base" / "lazy.py"
                assert is_own or (home and not (ROOT / home).exists()), path


def test_results_still_travel_between_processes():
    plan = des.Plan(placement=des.Placement(domain_of_layer=(0, 1)))

    assert pickle.loads(pickle.dumps(plan)) == plan
