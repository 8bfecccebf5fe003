"""Inner kernels: the bits of Python, in the cached code of the kernels that call them alone."""

import importlib
import os
import sys
from pathlib import Path

import numpy as np
from forked import printed_by

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


def run(folder: Path) -> list[str]:
    """Results of both kernels in a process of its own, and how often the cache had the second."""

    def show() -> None:
        os.environ["NUMBA_CACHE_DIR"] = str(folder / "c")
        sys.path.insert(0, str(folder))
        kernels = importlib.import_module("kernels")
        xs = np.array([0.1, 2.0, 7.7])
        results = (repr(float(kernel(xs))) for kernel in (kernels.outer, kernels.twice))
        print(*results, sum(kernels.twice.stats.cache_hits.values()))  # noqa: T201

    return printed_by(show, folder).split()


def test_inner_kernels_give_the_bits_of_python_compiled_and_from_the_cache(tmp_path: Path):
    """Only kernels that Python calls are kept."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    halved = [0.5 * (x / 3.0) + (x / 3.0 + 1.0) for x in (0.1, 2.0, 7.7)]
    outer = 0.0 + halved[0] + halved[1] + halved[2]
    expected = [repr(outer), repr(outer + halved[0])]

    assert run(tmp_path) == [*expected, "0"]
    kept = {path.name.split("-")[0].split(".")[-1] for path in tmp_path.glob("c/*/*/*.nbi")}
    assert kept == {"outer", "twice"}
    assert run(tmp_path) == [*expected, "1"]
