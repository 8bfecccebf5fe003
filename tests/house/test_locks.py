"""The locks hold what setup.cfg declares and what the packages import, and no more."""

import ast
import configparser
import re
import runpy
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from source_tree import ROOT, nodes_of_file

from des.base.extras import EXTRA_OF

REQUIREMENTS = ROOT / "requirements"
INSTALL = runpy.run_path(str(REQUIREMENTS / "install.py"))
NEEDS = runpy.run_path(str(ROOT / "conftest.py"))["NEEDS"]
PACKAGES = ("des", "agents", "calibration", "scenarios", "astra-sim/astra_sim")
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg", "utf-8")
LINE = re.compile(r"(?m)^([A-Za-z0-9][\w.-]*)==([^\s;]+)((?:.*\\\n +--hash=sha256:[0-9a-f]{64})*)")


def versions(name: str) -> dict[str, Version]:
    """Version of each package in a list."""
    text = (REQUIREMENTS / name).read_text("utf-8")
    return {canonicalize_name(line[1]): Version(line[2]) for line in LINE.finditer(text)}


def declared(section: str, option: str) -> list[Requirement]:
    """Requirements under an option of setup.cfg."""
    return [Requirement(line) for line in CONFIG[section][option].split("\n") if line]


def imported() -> set[str]:
    """Distributions that the packages import, those that only an extra brings apart."""
    modules = set()
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in nodes_of_file(path):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules.add(str(node.module))
    ours = {Path(package).name for package in PACKAGES}
    foreign = {
        "protobuf" if module.startswith("google.protobuf") else module.partition(".")[0]
        for module in modules
    } - ours
    owners = packages_distributions()
    return {
        canonicalize_name(owners.get(module, [module])[0])
        for module in foreign - set(sys.stdlib_module_names) - set(NEEDS) - {"_typeshed"}
    }


TRAIN = versions("train.lock") | versions("torch.txt")
TEST = versions("test.lock") | versions("torch.txt")


@pytest.mark.parametrize(
    ("lock", "section", "option"),
    [
        (TRAIN, "options", "install_requires"),
        (TRAIN, "options.extras_require", "train"),
        (TRAIN, "options.extras_require", "exact"),
        (TEST, "options", "install_requires"),
        (TEST, "options.extras_require", "test"),
        (TEST, "options.extras_require", "ray"),
        (TEST, "options.extras_require", "parquet"),
        (TEST, "options.extras_require", "k8s"),
        (TEST, "options.extras_require", "docs"),
        (TEST, "options.extras_require", "cluster"),
    ],
)
def test_every_declared_package_is_locked_at_a_version_it_may_have(lock, section, option):
    for requirement in declared(section, option):
        assert lock[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_setup_cfg_declares_what_the_packages_import_and_nothing_else():
    """In the base installation, or in the extras that training and the solvers need."""
    extras = [("options.extras_require", name) for name in ("train", "exact")]
    options = [("options", "install_requires"), *extras]
    names = {canonicalize_name(one.name) for each in options for one in declared(*each)}

    assert imported() == names


def test_every_extra_that_a_missing_module_names_is_declared():
    assert set(EXTRA_OF.values()) <= set(CONFIG["options.extras_require"])
    base = {canonicalize_name(one.name) for one in declared("options", "install_requires")}
    owners = packages_distributions()
    assert not base & {canonicalize_name(owners.get(name, [name])[0]) for name in EXTRA_OF}


def test_training_and_tests_use_equal_versions():
    assert TRAIN.items() <= TEST.items()


def test_the_cuda_libraries_fit_the_locked_packages():
    cuda = versions("cuda.lock")

    assert {name for name in cuda if cuda[name] != TRAIN.get(name)} == {
        name for name in cuda if name.startswith(("cuda-", "nvidia-")) or name == "triton"
    }


@pytest.mark.parametrize(("name", "lock"), [("excluded", TEST), ("excluded-train", TRAIN)])
def test_what_is_left_out_is_in_no_lock(name, lock):
    lines = (REQUIREMENTS / f"{name}.txt").read_text("utf-8").splitlines()
    left_out = {canonicalize_name(line) for line in lines if not line.startswith("#")}

    assert left_out
    assert not left_out & lock.keys()


@pytest.mark.parametrize("name", ["installer.lock", "train.lock", "test.lock", "cuda.lock"])
def test_every_locked_package_has_hashes(name):
    text = (REQUIREMENTS / name).read_text("utf-8")
    packages = [line for line in text.splitlines() if line[0] not in "# "]

    assert len(packages) == len(list(LINE.finditer(text))) > 0
    assert all("--hash" in line[3] for line in LINE.finditer(text))


def test_training_needs_at_most_65_packages():
    assert len(TRAIN) + len({"uv", "eastwest"}) <= 65


def test_the_configuration_of_pip_becomes_variables_of_uv():
    listing = [
        ":env:.find-links='/wheels /more'",
        "global.cert='/etc/certificates.pem'",
        "global.extra-index-url='\\nhttps://one/simple\\nhttps://two/simple'",
        "global.find-links='/other'",
        "global.index-url='https://global/simple'",
        "install.index-url='https://install/simple'",
        "global.disable-pip-version-check='1'",
    ]

    assert INSTALL["uv_variables"](listing) == {
        "UV_DEFAULT_INDEX": "https://install/simple",
        "UV_INDEX": "https://one/simple https://two/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "SSL_CERT_FILE": "/etc/certificates.pem",
    }


def test_without_a_configuration_of_pip_uv_keeps_its_own_index():
    assert INSTALL["uv_variables"]([]) == {}


def test_variables_of_uv_win_over_the_configuration_of_pip():
    listing = f"print({chr(34)}global.index-url='https://pip/simple'{chr(34)})"
    found = INSTALL["environment"](
        [sys.executable, "-c", listing], {"UV_DEFAULT_INDEX": "https://uv/simple"}
    )

    assert found == {
        "UV_DEFAULT_INDEX": "https://uv/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


@pytest.mark.parametrize(
    ("requires", "needed"),
    [
        (["filelock", "nvidia-cudnn-cu13==9.20.0.48; platform_system == 'Linux'"], True),
        (["cuda-toolkit[cublas]==13.0.3; platform_system == 'Linux'"], True),
        (["filelock", "typing-extensions>=4.10.0"], False),
    ],
)
def test_cuda_libraries_are_installed_where_torch_declares_them(requires, needed, tmp_path):
    metadata = tmp_path / "torch-2.13.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: torch", "Version: 2.13.0"]
    metadata.write_text("\n".join(lines + [f"Requires-Dist: {one}" for one in requires]), "utf-8")

    assert INSTALL["needs_cuda"](tmp_path) is needed
