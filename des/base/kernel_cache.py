"""Cache of compiled code whose entries are checked before they run.

Numba numbers the entries of a function and writes its index first: two processes that compile one
function for two signatures at once may give both the same number, and a third one then runs code of
one with arguments of the other. Here the names of entries are random, so none is written twice, and
index and entries end with a digest: what is damaged or of another kind is compiled again.
Folders are named after packages and not after paths, so that all checkouts share equal code.
"""

import hashlib
import pickle
import secrets
from pathlib import Path
from typing import Any, cast

from numba.core import caching

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


class _SealedCache(_FunctionCache):  # type: ignore[misc] # a class of Numba
    """Cache of one function."""

    _impl_class = _Places

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = SealedFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )


def keep_sealed(dispatcher: Any, function: Any) -> None:
    """Give a function that Numba compiles this cache, in place of that of ``cache=True``."""
    vars(dispatcher)["_cache"] = _SealedCache(function)


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
