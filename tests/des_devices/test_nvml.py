"""Servers read by NVML: against a stand-in of NVIDIA's library, as most machines have none."""

import sys
from types import SimpleNamespace

import pytest

from des.devices.files.nvml import read_machine


class NVMLError(Exception):
    """Error of the library."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818 - a name of the library
    """Error where the GPU has none of what a function tells."""


class NVMLError_InvalidArgument(NVMLError):  # noqa: N801, N818 - a name of the library
    """Error where the GPU has fewer."""


def library(links, levels, *, names=("NVIDIA H100 80GB HBM3",) * 2):
    """Stand-in for pynvml: links of each GPU as (GPU number or None for a switch)."""

    def bus(number):
        return SimpleNamespace(busId=f"00000000:{number:02X}:00.0")

    def link(handle, place):
        if place >= len(links[handle]):
            raise NVMLError_InvalidArgument("no such link")
        return links[handle][place]

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVMLError_NotSupported=NVMLError_NotSupported,
        NVMLError_InvalidArgument=NVMLError_InvalidArgument,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(names),
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetName=lambda handle: names[handle].encode(),
        nvmlDeviceGetPciInfo=bus,
        nvmlDeviceGetNvLinkState=lambda handle, place: link(handle, place) != "off",
        nvmlDeviceGetNvLinkRemoteDeviceType=lambda handle, place: (
            2 if link(handle, place) is None else 0
        ),
        nvmlDeviceGetNvLinkRemotePciInfo=lambda handle, place: bus(link(handle, place)),
        nvmlDeviceGetTopologyCommonAncestor=lambda one, other: levels,
        nvmlDeviceGetCpuAffinity=lambda handle, size: [0b1111 << 4 * handle, 0],
        nvmlDeviceGetMemoryAffinity=lambda handle, size, scope: [1 << handle],
    )


@pytest.mark.parametrize(
    ("links", "level", "token"),
    [
        ([[1, 1, "off"], [0, 0]], 30, "NV2"),
        ([[None] * 18, [None] * 18], 50, "NV18"),
        ([[], []], 30, "PHB"),
        ([[], []], 50, "SYS"),
    ],
)
def test_tokens_are_nvlinks_or_the_path_on_pcie(links, level, token, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", library(links, level))

    server = read_machine()

    assert server.gpu_tokens == (("X", token), (token, "X"))
    assert [gpu.model for gpu in server.gpus] == ["h100", "h100"]
    assert [gpu.cpus for gpu in server.gpus] == [((0, 3),), ((4, 7),)]
    assert [gpu.numa_nodes for gpu in server.gpus] == [(0,), (1,)]


def test_machines_without_the_library_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ValueError, match="needs the package nvidia-ml-py"):
        read_machine()

    def fails():
        raise NVMLError("Driver Not Loaded")

    broken = library([[], []], 30)
    broken.nvmlInit = fails
    monkeypatch.setitem(sys.modules, "pynvml", broken)
    with pytest.raises(ValueError, match="cannot be used on this machine: Driver Not Loaded"):
        read_machine()

    monkeypatch.setitem(sys.modules, "pynvml", library([[], []], 7))
    with pytest.raises(ValueError, match="common ancestor of GPUs 0 and 1 is not known: 7"):
        read_machine()
