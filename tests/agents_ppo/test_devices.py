"""Devices of torch."""

import pytest
import torch

from agents.ppo.devices import DEVICES, resolve_device, use_torch_threads


def test_auto_is_cuda_where_there_is_one():
    assert resolve_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cpu") == "cpu"


@pytest.mark.parametrize(
    "name", ["gpu", "CPU", "", *(() if torch.cuda.is_available() else DEVICES[1:])]
)
def test_device_that_is_not_there_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"device must be auto or one of .*got '{name}'"):
        resolve_device(name)


def test_threads_are_those_of_torch():
    before = torch.get_num_threads()
    try:
        use_torch_threads(before + 1)
        assert torch.get_num_threads() == before + 1
    finally:
        use_torch_threads(before)
