"""Compilation of functions: same bits as Python, and a cache that notices every change.

Numba keeps compiled code until the file of the function itself changes; what the function took from
other modules would stay as it was, silently. So the cache has a folder for every state of a
kernel's module and of the modules of ours that it imports, directly or through other modules that
compiled code is made of (those that import this module, `des.base.scalar` or Numba); any other
module gives constants and records, so its own imports do not count. Where the files are
does not count either: all checkouts with equal sources share what is compiled.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

import numba
from numba.core import config
from numba.extending import register_jitable

from des.base.compiling import say_when_compiling
from des.base.kernel_cache import keep_sealed, root_of
from des.base.linking import InnerCompiler, KernelCompiler
from des.base.private_folder import user_cache_folder
from des.base.scalar import FunctionT, compile_scalars_by

_ROOT = Path(__file__).resolve().parents[2]
_MARKS = (__name__, "des.base.scalar")
_IMPORT = re.compile(r"^(?:from|import)\s+([\w.]+)", re.MULTILINE)


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function when it is first called; it runs without the interpreter's lock.

    Divisions by zero give infinities. Nothing is reordered or fused, so results are those of the
    same operations in Python, to the last bit. Globals are constants of the compiled code: pass
    what may change as an argument.
    """
    return _compiled(function, inline="never")


def lean_kernel(function: FunctionT) -> FunctionT:
    """Compile a kernel that makes no arrays: it does not count who uses those that it is given.

    That takes longer than the work itself where small kernels hand tuples of arrays on.
    """
    return _compiled(function, inline="never", is_counted=False)


def inner_kernel(function: FunctionT) -> FunctionT:
    """Compile a lean kernel that other kernels call, and Python cannot.

    Without the code that takes tuples of arrays from Python it is compiled in half the time.
    """
    return _compiled(function, inline="never", is_counted=False, is_for_python=False)


def inlined(function: FunctionT) -> FunctionT:
    """Compile a kernel that is written out in all that call it: loops over it can be vectorised."""
    return _compiled(function, inline="always")


def _compiled(
    function: FunctionT,
    *,
    inline: Literal["never", "always"],
    is_counted: bool = True,
    is_for_python: bool = True,
) -> FunctionT:
    source = Path(function.__code__.co_filename).resolve()
    base = cache_base()
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    if base is not None:
        config.CACHE_DIR = str(base / _digest_when_loaded(source))  # type: ignore[attr-defined]
    try:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        options |= {"inline": inline, "_nrt": is_counted, "no_cfunc_wrapper": True}
        options["no_cpython_wrapper"] = not is_for_python
        options["pipeline_class"] = KernelCompiler if is_for_python else InnerCompiler
        compiled: Any = numba.njit(**options)(function)
        if base is not None and is_for_python:
            keep_sealed(compiled, function)
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
    return cast(FunctionT, compiled)


def is_cached(module: str, function: str) -> bool:
    """Return whether compiled code of a function of a module, as its sources are now, is kept."""
    base, spec = cache_base(), find_spec(module)
    if base is None or spec is None or spec.origin is None:
        return False
    kept = (base / source_digest(Path(spec.origin))).glob(f"*/*.{function}-*.nbi")  # Numba's names
    return next(kept, None) is not None


def source_digest(source: Path) -> str:
    """Return a digest of a module's source, of all it imports of ours, and of Numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sources_of(source):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


_digest_when_loaded = cache(source_digest)
"""The same for all kernels of a module, whose sources are as they were for the first of them."""


def sources_of(source: Path) -> list[Path]:
    """Return the sorted files of a module and of the modules of ours that its kernels depend on.

    Modules of ours are those in the folder tree of the module itself and in that of this package.
    """
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imports_of(path, path.stat().st_mtime_ns)
    return sorted(found)


@cache
def _imports_of(path: Path, _changed_ns: int) -> tuple[Path, ...]:
    """Files of the modules of ours that a module of kernels imports, read again if it changes."""
    roots = (root_of(path.parent), _ROOT)
    names = _IMPORT.findall(path.read_text(encoding="utf-8"))
    if not any(name in _MARKS or name.split(".")[0] == numba.__name__ for name in names):
        return ()
    return tuple(file for name in names for root in roots for file in _files_of(root, name))


def _files_of(root: Path, name: str) -> Iterator[Path]:
    """File of a module or package below a root, if it is there."""
    place = root.joinpath(*name.split("."))
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            yield file


def cache_base() -> Path | None:
    """Folder of all caches, whose index is unpickled: one that is named, or a private one."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    return Path(given) if given else user_cache_folder()


COMPILING_LINES = say_when_compiling(cache_base())
"""Reporter on stderr of what this process compiles."""

compile_scalars_by(register_jitable(error_model="numpy"))
