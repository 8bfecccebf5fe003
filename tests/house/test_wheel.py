"""Content of the wheel: modules and the data that they read."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "agents": ROOT / "agents",
    "astra_sim": ROOT / "astra-sim" / "astra_sim",
    "calibration": ROOT / "calibration",
    "des": ROOT / "des",
    "scenarios": ROOT / "scenarios",
}
WITHOUT_CACHES = shutil.ignore_patterns("__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Wheel built from a copy of the packages."""
    folder, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    for path in PACKAGES.values():
        shutil.copytree(path, folder / path.relative_to(ROOT), ignore=WITHOUT_CACHES)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(built)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def wheel_names(wheel):
    """Names of the files in the wheel."""
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.parametrize("package", PACKAGES)
def test_the_wheel_has_every_file_of_a_package(wheel_names, package):
    """Also data, which only ``package_data`` of setup.cfg brings in."""
    folder = PACKAGES[package]
    files = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert {name for name in wheel_names if name.split("/")[0] == package} == files


def test_the_wheel_has_the_published_figures(wheel_names):
    data = {name for name in wheel_names if name.startswith("scenarios/reproduce/data/")}

    folder = ROOT / "scenarios/reproduce/data"
    tables = {path.relative_to(ROOT).as_posix() for path in folder.rglob("*.json")}
    assert {name for name in data if name.endswith(".json")} == tables
    assert {"crosspipe.json", "vtrain_multi.json"} <= {Path(name).name for name in tables}
    assert {Path(name).name for name in data if name.endswith(".csv")} == {
        "layer_memory.csv",
        "network_profiles.csv",
        "opt_350m_profile.csv",
        "real_runs.csv",
        "real_runs_stages.csv",
        "rows.csv",
    }
    assert "scenarios/reproduce/data/sailor/LICENSE" in data


_OUTSIDE = """
import json, sys
import agents, des, scenarios
from importlib.metadata import entry_points
from des.base.version import find_installed_version

(script,) = entry_points(group="console_scripts", name="eastwest")
flags = ["--model", "llama2_7b", "--placement", "0*16,1*16", "--microbatches", "2", "--json"]
code = script.load()(["simulate", *flags, "--quiet"])
files = [one.__file__ for one in (agents, des, scenarios)]
print(json.dumps([code, find_installed_version(), *files]))
"""


def test_the_wheel_simulates_outside_the_checkout(wheel, tmp_path):
    """Unpacked as pip does, before the checkout on the path, in a folder of its own."""
    site, here = tmp_path / "site", tmp_path / "here"
    here.mkdir()
    zipfile.ZipFile(wheel).extractall(site)
    done = subprocess.run(
        [sys.executable, "-c", _OUTSIDE],
        cwd=here,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    shown, last = done.stdout.rsplit("\n", 2)[:2]
    code, version, *files = json.loads(last)

    assert (code, version) == (0, "1.0.0")
    assert all(Path(file).is_relative_to(site) for file in files)
    assert json.loads(shown)["schedule"] == "1f1b"
    assert (here / json.loads(shown)["files"][0]).is_file()
