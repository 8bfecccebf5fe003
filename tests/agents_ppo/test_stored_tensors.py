"""A checkpoint takes no more memory than its file, and calls nothing."""

import io
import zipfile

import pytest
import torch

from agents.ppo.checkpoint import CheckpointError, load_checkpoint, require_held, save_checkpoint
from agents.ppo.stored_tensors import stored_content

DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32),
    *(torch.int16, torch.int8, torch.uint8, torch.bool),
]


def saved(payload: object) -> bytes:
    target = io.BytesIO()
    torch.save(payload, target)
    return target.getvalue()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (1, 1)])
def test_tensors_come_back_as_torch_reads_them(dtype, shape):
    tensor = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)

    found = stored_content(saved({"a": tensor}))["a"]

    assert found.dtype == dtype
    assert torch.equal(found, tensor)
    found.fill_(1)  # memory of its own


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(1).expand(10**9),
        torch.zeros(4)[1:],
        torch.zeros(4)[:2],
        torch.zeros(2, 3).t(),
        torch.zeros(2)[:1].expand(10**6, 1),
    ],
    ids=["repeated", "shifted", "of a larger one", "turned", "repeated view"],
)
def test_a_tensor_that_is_not_its_storage_is_refused(tensor):
    with pytest.raises(ValueError, match="tensor"):
        stored_content(saved({"a": tensor}))


def test_a_packed_entry_is_refused_before_it_is_unpacked():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 2**26)

    with pytest.raises(zipfile.BadZipFile, match="must not be compressed"):
        stored_content(target.getvalue())


def test_a_network_larger_than_its_parameters_is_refused_before_it_is_made():
    parameters = {"weight": torch.zeros(64, 64), "bias": torch.zeros(64)}

    require_held(parameters, (64, 64))
    with pytest.raises(ValueError, match="a network of 10000000000 weights or more, with 4160 p"):
        require_held(parameters, (64, 10), (100_000, 100_000))


def test_the_message_of_a_damaged_file_is_short(tmp_path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, {"a": "b" * 100_000})
    path.write_bytes(path.read_bytes().replace(b"b" * 100_000, b"c" * 100_000))

    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path)
    assert len(str(caught.value)) < 1000
