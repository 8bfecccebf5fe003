"""Content of a checkpoint file, with nothing larger than the file itself.

A file says of every tensor how large it is, and of the whole which functions make it. Here only
what `agents.ppo.checkpoint` writes is read: plain values, and contiguous tensors that
fill their storages. Sizes are compared with the bytes that are there before anything is allocated.
"""

import io
import math
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

MOST_BYTES = 2**30
"""Largest file of a checkpoint; those of our networks have less than a thousandth of it."""

MOST_ENTRIES = 1_000_000
"""Values in a checkpoint, those that are there twice counted twice."""

MOST_DEPTH = 64
_MOST_DIMENSIONS = 16

_DTYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
_OPCODES = frozenset(
    [
        "PROTO",
        "STOP",
        "MARK",
        "GLOBAL",
        "REDUCE",
        "BINPERSID",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG1",
        "LONG4",
        "BINFLOAT",
        "BINUNICODE",
        "EMPTY_DICT",
        "SETITEM",
        "SETITEMS",
        "EMPTY_LIST",
        "APPEND",
        "APPENDS",
        "EMPTY_TUPLE",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "BINPUT",
        "LONG_BINPUT",
        "BINGET",
        "LONG_BINGET",
    ]
)
"""Operations of plain values and tensors; others can take any amount of memory."""


class _Storage(NamedTuple):
    """Bytes of a tensor and their type."""

    dtype: torch.dtype
    content: bytes


def stored_content(packed: bytes) -> object:
    """Return what a file of torch holds.

    Raises
    ------
    Exception
        Of almost any type, if it is damaged, larger than it seems, or holds anything else.
    """
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise zipfile.BadZipFile("entries must not be compressed")
        if sum(entry.file_size for entry in entries) > len(packed):
            raise zipfile.BadZipFile("entries must not be larger than the file")
        damaged = archive.testzip()
        if damaged is not None:
            raise zipfile.BadZipFile(f"checksum of {damaged} is wrong")
        held = {entry.filename.partition("/")[2]: archive.read(entry) for entry in entries}
    if held.get("byteorder", b"little") != b"little":
        raise ValueError("its byte order must be little")
    plan = held["data.pkl"]
    _require_plain(plan)
    content: object = _Reader(plan, held).load()
    _require_few(content)
    return content


def _require_plain(plan: bytes) -> None:
    """Refuse operations and places that plain values do not need."""
    for number, (operation, argument, _) in enumerate(pickletools.genops(plan)):
        if operation.name not in _OPCODES:
            raise pickle.UnpicklingError(f"operation {operation.name} is none of plain values")
        if operation.name.endswith("BINPUT") and (argument or 0) > number:
            raise pickle.UnpicklingError(f"place {argument} is beyond all that is there")


class _Reader(pickle.Unpickler):
    """Makes plain values and tensors, and calls nothing else."""

    def __init__(self, plan: bytes, held: Mapping[str, bytes]) -> None:
        super().__init__(io.BytesIO(plan))
        self._held = held

    def find_class(self, module: str, name: str) -> Any:
        """Give what a tensor is made of."""
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in _DTYPES:
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is no part of plain values")

    def persistent_load(self, identity: Any) -> _Storage:
        """Give the bytes of a tensor, of which there must be those that it says."""
        kind, storage, key, _, num_values = identity
        dtype = _DTYPES[storage]
        content = self._held[f"data/{key}"]
        if kind != "storage" or len(content) != num_values * dtype.itemsize:
            raise ValueError(f"tensor {key} must have {num_values!r} values in its bytes")
        return _Storage(dtype, content)


def _tensor(storage: _Storage, offset: int, size: Any, stride: Any, *_: object) -> Tensor:
    """Make a tensor that is its storage."""
    if not isinstance(storage, _Storage) or offset != 0 or len(size) > _MOST_DIMENSIONS:
        raise ValueError("a tensor must begin with its storage")
    expected, step = [], 1
    for length in reversed(size):
        if type(length) is not int or length < 0:
            raise ValueError("sizes of a tensor must be whole numbers")
        expected.append(step)
        step *= max(length, 1)
    count = math.prod(size)
    if count * storage.dtype.itemsize != len(storage.content):
        raise ValueError(f"a tensor of {size!r} must fill its storage")
    if count > 1 and tuple(stride) != tuple(reversed(expected)):
        raise ValueError("the values of a tensor must lie one after the other")
    if count == 0:
        return torch.empty(size, dtype=storage.dtype)
    return torch.frombuffer(bytearray(storage.content), dtype=storage.dtype).reshape(size)


def _require_few(content: object) -> None:
    """Refuse content that is small in the file and endless to walk, or too deep to."""
    waiting = [(content, 0)]
    for _ in range(MOST_ENTRIES):
        if not waiting:
            return
        value, depth = waiting.pop()
        inner: list[object] = []
        if isinstance(value, Mapping):
            inner = [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            inner = list(value)
        if inner and depth >= MOST_DEPTH:
            raise ValueError(f"it must be nested at most {MOST_DEPTH} deep")
        if len(waiting) + len(inner) > MOST_ENTRIES:
            break
        waiting += [(each, depth + 1) for each in inner]
    raise ValueError(f"it must hold at most {MOST_ENTRIES} values")
