"""Content of the wheel: modules and the data that they read."""

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
def wheel_names(tmp_path_factory):
    """Names of the files in a wheel built from a copy of the packages."""
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
    (wheel,) = built.glob("*.whl")
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
    }
    assert "scenarios/reproduce/data/sailor/LICENSE" in data
