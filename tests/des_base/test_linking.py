"""Inner kernels: the bits of Python, in the cached code of the kernels that call them alone."""

import os
import subprocess
import sys
from pathlib import Path

import des.base.jit

ROOT = Path(des.base.jit.__file__).parents[2]

KERNELS = """
from des.base.jit import inner_kernel, kernel
from des.base.scalar import scalar

@inner_kernel
def third(x):
    return x / 3.0

@scalar
def shifted(x):
    return third(x) + 1.0

@inner_kernel
def halved(x):
    return 0.5 * third(x) + shifted(x)

@kernel
def outer(xs):
    total = 0.0
    for place in range(len(xs)):
        total += halved(xs[place])
    return total

@kernel
def twice(xs):
    return outer(xs) + halved(xs[0])
"""

CALLS = """
import numpy as np
from kernels import outer, twice
xs = np.array([0.1, 2.0, 7.7])
print(repr(float(outer(xs))), repr(float(twice(xs))), sum(twice.stats.cache_hits.values()))
"""


def run(folder: Path) -> list[str]:
    """Results of both kernels in a process of its own, and how often the cache had the second."""
    variables = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "NUMBA_CACHE_DIR": str(folder / "c")}
    environment = os.environ | variables
    command = [sys.executable, "-c", CALLS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_inner_kernels_give_the_bits_of_python_compiled_and_from_the_cache(tmp_path: Path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    halved = [0.5 * (x / 3.0) + (x / 3.0 + 1.0) for x in (0.1, 2.0, 7.7)]
    outer = 0.0 + halved[0] + halved[1] + halved[2]
    expected = [repr(outer), repr(outer + halved[0])]

    assert run(tmp_path) == [*expected, "0"]
    assert run(tmp_path) == [*expected, "1"]


def test_only_kernels_that_python_calls_are_kept(tmp_path: Path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    run(tmp_path)

    kept = {path.name.split("-")[0].split(".")[-1] for path in tmp_path.glob("c/*/*/*.nbi")}
    assert kept == {"outer", "twice"}
