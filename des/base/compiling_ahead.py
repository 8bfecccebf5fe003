"""A second process that fills the cache of compiled code while this one compiles other kernels."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from des.base.jit import cache_base, is_cached
from des.base.machine import usable_cores
from des.base.speaking import SPEAKER


@contextmanager
def compiling_ahead(
    program: str, kernels: Mapping[str, str], *, num_cores: int | None = None
) -> Iterator[Callable[[], None]]:
    """Run a program in a second process if none of some kernels is in the cache.

    The program uses kernels, so they are compiled into the cache. It gives no result, ends with
    this process, and is killed at the end of the context. If it fails, a line on stderr says so,
    and kernels that it has not compiled are compiled when they are first called.

    Parameters
    ----------
    program
        Name of a module that is run with the number of this process.
    kernels
        Name of a kernel in each of some modules: large ones, of this process and of the program.
    num_cores
        Cores for both processes; no second process with a single one (default: the cores that this
        process may use).

    Yields
    ------
    Callable
        Waits until the program has ended; without one it returns immediately.
    """
    cores = usable_cores() if num_cores is None else num_cores
    folder = cache_base()
    if folder is None or cores < 2 or any(is_cached(*each) for each in kernels.items()):
        yield _nothing
        return
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", program, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=os.environ | paths | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,  # Ctrl-C is for this process, which ends the other
    )
    try:
        yield lambda: _wait_for(process)
    finally:
        process.kill()
        process.wait()


def _wait_for(process: "subprocess.Popen[bytes]") -> None:
    with SPEAKER.doing("waiting for kernels of the second process"):
        code = process.wait()
    if code and sys.stderr is not None:
        sys.stderr.write(f"compiling ahead: the second process ended with code {code}\n")


def _nothing() -> None:
    """Wait for no process."""
