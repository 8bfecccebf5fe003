"""Cache of compiled code whose entries are checked before they run.

Numba numbers the entries of a function and writes its index first: two processes that compile one
function for two signatures at once may give both the same number, and a third one then runs code of
one with arguments of the other. Here the names of entries are random, so none is written twice, and
index and entries end with a digest: what is damaged or of another kind is compiled again. One
process compiles a function while the others that need it wait for it to be kept.
Folders are named after packages and not after paths, so that all checkouts share equal code.
"""

import fcntl
import hashlib
import os
import pickle
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from numba.core import caching

MOST_WAIT_S = 300.0
"""Longest that a process waits for another one to compile a function. [s]"""

_LOOK_EVERY_S = 0.02
_DIGEST_BYTES = hashlib.sha256().digest_size

# Numba declares no types for these
_IndexDataCacheFile: Any = cast(Any, caching).IndexDataCacheFile
_FunctionCache: Any = cast(Any, caching).FunctionCache
_CompileResultCacheImpl: Any = cast(Any, caching).CompileResultCacheImpl
_UserProvidedCacheLocator: Any = cast(Any, caching).UserProvidedCacheLocator


class SealedFiles(_IndexDataCacheFile):  # type: ignore[misc] # a class of Numba
    """Index and entries of a function; a bad one counts as one that is not there."""

    def _data_name(self, _: int) -> str:
        return str(super()._data_name(secrets.randbits(63)))

    def _dump(self, content: object) -> bytes:
        data: bytes = super()._dump(content)
        return data + hashlib.sha256(data).digest()  # which no reader of pickles looks at

    def _load_index(self) -> dict[Any, str]:
        head = pickle.dumps(self._version, protocol=-1)
        if not _is_sealed(self._index_path, head):
            return {}
        found: dict[Any, str] = super()._load_index()
        return found

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_sealed(path):
            raise OSError(f"{path}: must be as it was written, got other bytes")
        return super()._load_data(name)


class _Place(_UserProvidedCacheLocator):  # type: ignore[misc] # a class of Numba
    """Folder of a module's package, whose name has no path of this machine in it."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Name it: ``des.compiled.kernels``, and ``-`` for modules that are in no package."""
        folder = Path(py_file).resolve().parent
        return ".".join(folder.relative_to(root_of(folder)).parts) or "-"


class _Places(_CompileResultCacheImpl):  # type: ignore[misc] # a class of Numba
    _locator_classes = (_Place,)


class SealedCache(_FunctionCache):  # type: ignore[misc] # a class of Numba
    """Cache of one function."""

    _impl_class = _Places

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = SealedFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )
        self._lock_path = Path(self._cache_path) / f"{self._impl.filename_base}.lock"
        self._lock: int | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a function; None if this process is to compile it, and no other does."""
        found = super().load_overload(sig, target_context)
        if found is None and self._lock is None:
            self._take_turn()
            found = super().load_overload(sig, target_context)
            if found is not None:
                self._end_turn()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, for those who wait for it."""
        try:
            super().save_overload(sig, data)
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        with suppress(OSError):  # a folder that cannot be written: everyone compiles
            self._impl.locator.ensure_cache_path()
            self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        latest_s = time.monotonic() + MOST_WAIT_S
        while self._lock is not None and time.monotonic() < latest_s:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(_LOOK_EVERY_S)
            else:
                return

    def _end_turn(self) -> None:
        if self._lock is not None:
            os.close(self._lock)  # and so give the lock back
            self._lock = None


def keep_sealed(dispatcher: Any, function: Any) -> None:
    """Give a function that Numba compiles this cache, in place of that of ``cache=True``."""
    vars(dispatcher)["_cache"] = SealedCache(function)


def root_of(folder: Path) -> Path:
    """Folder that holds the top-level package that a folder of modules belongs to."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _is_sealed(path: str, head: bytes = b"") -> bool:
    """Whether a file is there as it was written, but for its head."""
    try:
        content = Path(path).read_bytes().removeprefix(head)
    except OSError:
        return False
    data, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return hashlib.sha256(data).digest() == digest
