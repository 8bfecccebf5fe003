"""Compiled functions: the bits of Python, and a cache that is never stale."""

import math
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from forked import printed_by
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config

import des.base.jit
from des.base.jit import kernel, source_digest, sources_of
from des.base.scalar import scalar

ROOT = Path(des.base.jit.__file__).parents[2]

INNER = """
from des.base.jit import kernel
from des.base.scalar import scalar

@scalar
def shared(x):
    return x + 1.0

@kernel
def compiled(x):
    return x * 10.0
"""
OUTER = """
from des.base.jit import kernel
from {package}.inner import compiled, shared

@kernel
def outer(x):
    return compiled(shared(x))

print(outer(3.0), sum(outer.stats.cache_hits.values()), sum(outer.stats.cache_misses.values()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package whose kernel calls functions of another module."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text(INNER)
    (folder / "outer.py").write_text(OUTER.format(package=folder.name))
    return folder


def run(package: Path, **variables: str) -> list[float]:
    """Result of the kernel in a process of its own, and how often the cache had it or not."""

    def show() -> None:
        os.environ.pop("NUMBA_CACHE_DIR", None)
        os.environ.update(variables)
        sys.dont_write_bytecode, tempfile.tempdir = True, None
        sys.path.insert(0, str(package.parent))
        runpy.run_module(f"{package.name}.outer", run_name="__main__")

    return [float(word) for word in printed_by(show, package.parent).split()]


def folder_of(package: Path) -> str:
    """Name of the folder of the outer module's cache, as its sources are now."""
    return source_digest(package / "outer.py")


def test_a_kernel_follows_changes_of_what_it_calls_in_other_modules(package, tmp_path):
    """Numba alone looks at the file of the kernel only, and would keep what it took."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(package, **cache) == [40.0, 0, 1]
    assert run(package, **cache) == [40.0, 1, 0]
    folders = {folder_of(package)}

    for old, new, expected in (("x + 1.0", "x + 2.0", 50.0), ("x * 10.0", "x * 20.0", 80.0)):
        (package / "inner.py").write_text(INNER.replace(old, new))
        assert run(package, **cache) == [expected, 0, 1]
        folders.add(folder_of(package))
    (package / "inner.py").write_text(INNER)
    assert run(package, **cache) == [40.0, 1, 0]

    assert len(folders) == 3
    assert folders <= {path.name for path in (tmp_path / "cache").iterdir()}


def test_the_cache_is_the_users_where_none_is_named_and_serves_copies_elsewhere(package, tmp_path):
    copy = shutil.copytree(package, tmp_path / "elsewhere" / package.name)
    assert run(package, XDG_CACHE_HOME=str(tmp_path / "home")) == [40.0, 0, 1]

    assert list((tmp_path / "home" / "eastwest" / folder_of(package)).rglob("*.nbi"))
    assert run(copy, XDG_CACHE_HOME=str(tmp_path / "home")) == [40.0, 1, 0]


def test_the_cache_is_a_temporary_one_where_the_users_cannot_be_made(package, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "scratch").mkdir()
    run(package, XDG_CACHE_HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path / "scratch"))

    (base,) = (tmp_path / "scratch").glob("eastwest*")
    assert list((base / folder_of(package)).rglob("*.nbi"))


@pytest.mark.parametrize("name", ["inner.py", "outer.py", "__init__.py"])
def test_the_digest_changes_with_every_source_that_a_module_imports(name, package):
    head = (
        f"from des.base.jit import kernel\nimport small\nfrom {package.name}.inner import shared\n"
    )
    (package / "outer.py").write_text(head)
    before, text = source_digest(package / "outer.py"), (package / name).read_text()
    assert source_digest(package / "outer.py") == before

    (package / name).write_text(text + "#")
    assert source_digest(package / "outer.py") != before
    (package / name).write_text(text)
    assert source_digest(package / "outer.py") == before


def test_the_digest_leaves_out_what_a_module_does_not_import(package):
    before = source_digest(package / "inner.py")

    (package / "outer.py").write_text("a = 1\n")
    (package / "notes.txt").write_text("")
    assert source_digest(package / "inner.py") == before


def test_sources_are_followed_through_modules_of_this_project(package):
    found = sources_of(package / "outer.py")

    assert {path.name for path in found} >= {"outer.py", "inner.py", "jit.py"}
    assert ROOT / "des" / "base" / "jit.py" in found


def test_decorating_leaves_numbas_own_cache_alone():
    before = config.CACHE_DIR
    kernel(lambda x: x)

    assert before == config.CACHE_DIR


@scalar
def curve(x: float, y: float) -> float:
    """Operations that a compiler is tempted to fuse or to turn into a reciprocal."""
    return (x * y + x) / 3.0 - x / y * y


@kernel
def compiled_curve(x: float, y: float) -> float:
    return curve(x, y)


@given(x=st.floats(-1e100, 1e100), y=st.floats(1e-100, 1e100))
def test_shared_formulas_give_the_same_bits_compiled(x, y):
    found, expected = compiled_curve(x, y), curve(x, y)

    assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_divisions_by_zero_give_infinities_in_kernels_and_errors_in_python():
    with pytest.raises(ZeroDivisionError):
        curve(1.0, 0.0)
    assert math.isnan(compiled_curve(1.0, 0.0))
