"""How functions are compiled: same bits as Python, and a cache that notices every change.

Numba keeps compiled code until the file of the function itself changes; what the function took from
other modules would stay as it was, silently. So the cache has a folder for every state of the
sources of all kernels.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba
from numba.core import config
from numba.extending import register_jitable

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_KERNELS = Path(__file__).resolve().parent


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function when it is first called; it runs without the interpreter's lock.

    Divisions by zero give infinities. Nothing is reordered or fused, so results are those of the
    same operations in Python, to the last bit. Globals are constants of the compiled code: pass
    what may change as an argument.
    """
    return _compiled(function, inline="never")


def inlined(function: FunctionT) -> FunctionT:
    """Compile a kernel that is written out in all that call it: loops over it can be vectorised."""
    return _compiled(function, inline="always")


def _compiled(function: FunctionT, *, inline: Literal["never", "always"]) -> FunctionT:
    own = Path(function.__code__.co_filename).resolve().parent
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = str(  # type: ignore[attr-defined]
        _cache_base() / digest_of(*sorted({_KERNELS, own}))
    )
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy", inline=inline)(function)
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
    return cast(FunctionT, compiled)


def scalar(function: FunctionT) -> FunctionT:
    """Leave a function as it is in Python, and compile it into the kernels that call it."""
    shared: FunctionT = register_jitable(error_model="numpy")(function)
    return shared


def digest_of(*folders: Path) -> str:
    """Return a digest of all Python sources directly in some folders."""
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in folders:
        for path in sorted(folder.glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_base() -> Path:
    """Folder of all caches: the user's, or a temporary one where that cannot be written."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    shared = Path(tempfile.gettempdir()) / f"eastwest-{os.getuid()}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eastwest"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        return shared
    return home if os.access(home, os.W_OK) else shared
