"""A checkpoint is a safetensors file, takes no more memory than that, and calls nothing."""

import json

import numpy as np
import pytest
import torch

from agents.ppo.checkpoint import (
    CheckpointError,
    load_checkpoint,
    pack_content,
    require_held,
    save_checkpoint,
    unpack_content,
)

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (1, 1)])
def test_arrays_and_tensors_come_back_as_they_were(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    packed = pack_content({"a": array}, {})

    found = unpack_content(packed)[1]["a"]

    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    found.fill(1)  # memory of its own
    assert pack_content({"a": torch.from_numpy(array)}, {}) == packed


def laid_out(header: dict[str, object], body: bytes) -> bytes:
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + body


def test_the_file_is_laid_out_as_safetensors_says():
    """By the format's page: length, header of JSON, bytes; read here without our reader."""
    packed = pack_content({"net": {"bias": np.arange(3.0)}, "update": 4}, {"format": "f"})

    size = int.from_bytes(packed[:8], "little")
    header = json.loads(packed[8 : 8 + size])
    entry = header.pop("net.bias")
    assert entry == {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}
    assert np.frombuffer(packed[8 + size :]).tolist() == [0.0, 1.0, 2.0]
    assert header.keys() == {"__metadata__"}
    assert all(isinstance(value, str) for value in header["__metadata__"].values())


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"shape": [10**9], "data_offsets": [0, 8]}, "must have"),
        ({"shape": [1], "data_offsets": [8, 16]}, "must have"),
        ({"shape": [-1], "data_offsets": [0, 8]}, "whole numbers"),
        ({"shape": [0], "data_offsets": [0, 0]}, "bytes of the file"),
    ],
    ids=["larger than its bytes", "shifted", "negative", "bytes left over"],
)
def test_an_array_that_is_not_its_bytes_is_refused(entry, complaint, monkeypatch):
    monkeypatch.setattr("agents.ppo.checkpoint._digest", lambda header, body: "same")
    content = {"content": json.dumps({"array": "a"}), "sha256": "same"}
    packed = laid_out({"__metadata__": content, "a": {"dtype": "F64", **entry}}, bytes(8))

    with pytest.raises(ValueError, match=complaint):
        unpack_content(packed)


def test_a_header_of_too_many_values_is_refused_before_it_is_read():
    with pytest.raises(ValueError, match="at most 1000000 values"):
        unpack_content(laid_out({"a": [0] * 1_000_001}, b""))


def test_a_network_larger_than_its_parameters_is_refused_before_it_is_made():
    parameters = {"weight": np.zeros((64, 64)), "bias": torch.zeros(64)}

    require_held(parameters, (64, 64))
    with pytest.raises(ValueError, match="a network of 10000000000 weights or more, with 4160 p"):
        require_held(parameters, (64, 10), (100_000, 100_000))


def test_the_message_of_a_damaged_file_is_short(tmp_path):
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, {"a": "b" * 100_000})
    path.write_bytes(path.read_bytes().replace(b"b" * 100_000, b"c" * 100_000))

    with pytest.raises(CheckpointError, match="SHA-256") as caught:
        load_checkpoint(path)
    assert len(str(caught.value)) < 1000
