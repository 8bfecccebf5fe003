"""Checkpoint files: written whole or not at all, the same bytes for the same content.

A checkpoint is a safetensors file: arrays after a header of JSON [1]_, whose metadata holds all but
the arrays. Nothing in it is run, and nothing larger than the file itself is made of it: sizes are
compared with the bytes that are there first. The header has the SHA-256 of all the rest.

References
----------
.. [1] Hugging Face, "Safetensors", https://huggingface.co/docs/safetensors, section "Format".
"""

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from des.base.atomic_write import write_atomically
from des.base.bounded_files import read_at_most
from des.base.names import one_line
from des.base.strict_json import parse_json

Array = npt.NDArray[Any]

MOST_BYTES = 2**30
"""Largest file of a checkpoint; those of our networks have less than a thousandth of it."""

_DTYPES = {
    **{"F64": np.float64, "F32": np.float32, "F16": np.float16, "BOOL": np.bool_, "U8": np.uint8},
    **{"I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8},
}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}


def pack_content(content: Mapping[str, object], metadata: Mapping[str, str]) -> bytes:
    """Pack plain values and arrays; equal content gives equal bytes.

    Parameters
    ----------
    content
        None, bool, int, float, str, arrays or tensors of torch, and lists, tuples and dicts of
        these.
    metadata
        Further entries of the header.

    Raises
    ------
    ValueError
        If the content holds anything else.
    """
    arrays: dict[str, Array] = {}
    text = _json(_plain(content, "payload", "", arrays))
    header: dict[str, Any] = {"__metadata__": {**metadata, "content": text}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        kind = {"dtype": _NAMES[array.dtype], "shape": list(array.shape)}
        header[name] = {**kind, "data_offsets": [begin, end]}
    body = b"".join(array.tobytes() for array in arrays.values())
    header["__metadata__"]["sha256"] = _digest(header, body)
    head = _json(header).encode()
    return len(head).to_bytes(8, "little") + head + body


def unpack_content(packed: bytes) -> tuple[Mapping[str, str], object]:
    """Return the metadata and the content that a file holds, without the latter if not ours.

    Raises
    ------
    Exception
        Of almost any type, if it is damaged, larger than it seems, or holds anything else.
    """
    size = int.from_bytes(packed[:8], "little")
    head, body = packed[8 : 8 + size], packed[8 + size :]
    if len(packed) < 8 or len(head) < size:
        raise ValueError("its header must be there")
    header: Any = parse_json(head.decode(), times_larger=2)
    metadata = header["__metadata__"]
    text = metadata.pop("content", None)
    if text is None:
        return metadata, None
    digest = metadata.pop("sha256")
    header["__metadata__"] = {**metadata, "content": text}
    if _digest(header, body) != digest:
        raise ValueError("its content must be as its SHA-256 says")
    del header["__metadata__"]
    return metadata, _restore(parse_json(text, times_larger=2), _arrays(header, body))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _digest(header: Mapping[str, object], body: bytes) -> str:
    return hashlib.sha256(_json(header).encode() + body).hexdigest()


def _plain(value: object, where: str, name: str, arrays: dict[str, Array]) -> object:
    """JSON of a value; the arrays in it are put aside by the names under which it has them."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if hasattr(value, "detach"):  # a tensor of torch, which is not loaded here
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype in _NAMES:
        while name in arrays:  # by names with dots
            name += "_"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        prefix = f"{name}." if name else ""
        entries = [
            [
                _plain(key, f"{where} key", name, arrays),
                _plain(entry, f"{where}[{key!r}]", f"{prefix}{key}", arrays),
            ]
            for key, entry in value.items()
        ]
        return {"dict": entries}
    if isinstance(value, list | tuple):
        parts = [
            _plain(entry, f"{where}[{row}]", f"{name}.{row}", arrays)
            for row, entry in enumerate(value)
        ]
        return parts if isinstance(value, list) else {"tuple": parts}
    raise ValueError(
        f"checkpoint: {where} must be None, bool, int, float, str, list, tuple, dict or an array, "
        f"got {type(value).__name__}"
    )


def _restore(value: Any, arrays: Mapping[str, Array]) -> Any:
    """Value of its JSON."""
    if isinstance(value, list):
        return [_restore(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "array":
        return arrays[inner]
    if kind == "tuple":
        return tuple(_restore(entry, arrays) for entry in inner)
    if kind == "dict":
        return {_restore(key, arrays): _restore(entry, arrays) for key, entry in inner}
    raise ValueError(f"a value must be of a known kind, got {kind!r}")


def _arrays(header: Mapping[str, Any], body: bytes) -> dict[str, Array]:
    """Arrays by name, each in memory of its own."""
    found, position = {}, 0
    for name, entry in header.items():
        dtype, (begin, end) = np.dtype(_DTYPES[entry["dtype"]]), entry["data_offsets"]
        shape = entry["shape"]
        if any(type(length) is not int or length < 0 for length in shape):
            raise ValueError(f"sizes of {name} must be whole numbers")
        if begin != position or math.prod(shape) * dtype.itemsize != end - begin:
            raise ValueError(f"array {name} must have {shape!r} values after those before it")
        found[name] = np.frombuffer(body[begin:end], dtype).reshape(shape).copy()
        position = end
    if position != len(body):
        raise ValueError("the bytes of the file must be those of its arrays")
    return found


_FORMAT, _VERSION = "eastwest-checkpoint", "3"


class CheckpointError(ValueError):
    """A file or a payload is not a checkpoint that can be used here."""


def save_checkpoint(path: Path, payload: Mapping[str, object]) -> None:
    """Write a checkpoint, replacing an old one at once: a failure leaves the old file in place.

    Parameters
    ----------
    path
        The file; its folder must exist.
    payload
        See `agents.ppo.checkpoint.pack_content`; dicts in equal order give equal bytes.

    Raises
    ------
    ValueError
        If the payload holds anything else.
    """
    write_atomically(path, pack_content(payload, {"format": _FORMAT, "version": _VERSION}))


def load_checkpoint(path: Path) -> dict[str, object]:
    """Payload of a checkpoint, with arrays of numpy; no code in the file is run.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, of another kind or of another version, or holds a number
        that is infinite or none.
    """
    allowed = f"an intact {_FORMAT} file of version {_VERSION}"
    try:
        packed = read_at_most(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got {error}") from error
    if packed.startswith(b"PK"):
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got one of torch, as before")
    try:
        metadata, payload = unpack_content(packed)
        found, version = metadata.get("format"), metadata.get("version")
    except Exception as error:  # on damaged bytes, almost anything is raised
        raise CheckpointError(
            f"checkpoint {path}: must be {allowed}, got {len(packed)} bytes of something else "
            f"({type(error).__name__}: {one_line(str(error), 300)})"
        ) from error
    if found != _FORMAT:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got another safetensors file")
    if version != _VERSION:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got version {version!r}")
    if not isinstance(payload, dict):
        raise CheckpointError(
            f"checkpoint {path}: payload must be a dict, got {type(payload).__name__}"
        )
    _require_finite(payload, path, ())
    return payload


def _require_finite(value: object, path: Path, where: tuple[str, ...]) -> None:
    """Refuse weights with which every decision would be the same, or none."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _require_finite(entry, path, (*where, str(key)))
    elif isinstance(value, np.ndarray) and not np.isfinite(value).all():
        raise CheckpointError(
            f"checkpoint {path}: {'.'.join(where)} must hold finite numbers, got "
            f"{int((~np.isfinite(value)).sum())} of {value.size} that are not"
        )


def require_held(parameters: object, *chains: Sequence[int]) -> None:
    """Refuse sizes of a network beyond its parameters, before any of them is allocated.

    Parameters
    ----------
    parameters
        Arrays or tensors by name, which are there.
    chains
        Widths of layers that follow each other: each has as many weights as the product of two.

    Raises
    ------
    TypeError
        If there are no parameters by name.
    ValueError
        If a chain needs more than all of them hold.
    """
    if not isinstance(parameters, Mapping) or not all(isinstance(one, str) for one in parameters):
        raise TypeError("parameters must be there, each by its name")
    held = sum(math.prod(each.shape) for each in parameters.values() if hasattr(each, "shape"))
    for chain in chains:
        needed = sum(one * other for one, other in itertools.pairwise(chain))
        if needed > held:
            raise ValueError(f"a network of {needed} weights or more, with {held} parameters")
