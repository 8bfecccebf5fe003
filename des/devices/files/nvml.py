"""Server of this machine, read by NVML, NVIDIA's management library; it knows no network cards."""

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from des.devices.files.gpu_list import model_of
from des.devices.files.pci_list import bus_address
from des.devices.server import Gpu, Server
from des.devices.spans import spans_of

_ANCESTORS = {10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""Tokens of ``nvmlGpuTopologyLevel_t``."""

_MOST_LINKS = 18
_SWITCH = 2
_WORD_BITS = 64
_WORDS = 64


def read_machine() -> Server:
    """Read the GPUs of this machine, their NVLinks, paths on PCIe, CPUs and NUMA nodes.

    Raises
    ------
    ValueError
        If the package pynvml, the library or a GPU is not there, or the library refuses.
    """
    try:
        pynvml = importlib.import_module("pynvml")
    except ImportError as error:
        raise ValueError(
            "NVML: needs the package nvidia-ml-py, whose module pynvml is not installed"
        ) from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise ValueError(f"NVML: cannot be used on this machine: {error}") from error
    try:
        return _server(pynvml)
    except pynvml.NVMLError as error:
        raise ValueError(f"NVML: cannot be read: {error}") from error
    finally:
        pynvml.nvmlShutdown()


def _server(nvml: ModuleType) -> Server:
    handles = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
    buses = [_bus(nvml.nvmlDeviceGetPciInfo(handle)) for handle in handles]
    links = [_links(nvml, handle, buses) for handle in handles]
    tokens = [
        [
            "X" if one == other else _token(nvml, handles, links, one, other)
            for other in range(len(handles))
        ]
        for one in range(len(handles))
    ]
    return Server(
        name="this machine",
        gpus=tuple(_gpu(nvml, number, handle) for number, handle in enumerate(handles)),
        tokens=tuple(tuple(row) for row in tokens),
    )


def _token(
    nvml: ModuleType,
    handles: Sequence[Any],
    links: Sequence[tuple[Sequence[int], int]],
    one: int,
    other: int,
) -> str:
    """Token of two GPUs: NVLinks between them, or both ways to switches, else the path on PCIe."""
    count = links[one][0][other] or min(links[one][1], links[other][1])
    if count:
        return f"NV{count}"
    level = nvml.nvmlDeviceGetTopologyCommonAncestor(handles[one], handles[other])
    if level not in _ANCESTORS:
        raise ValueError(f"NVML: common ancestor of GPUs {one} and {other} is not known: {level}")
    return _ANCESTORS[level]


def _links(nvml: ModuleType, handle: Any, buses: Sequence[str]) -> tuple[list[int], int]:
    """Active NVLinks of a GPU: to each GPU, and to switches."""
    to_gpus, to_switches = [0] * len(buses), 0
    for link in range(_MOST_LINKS):
        try:
            if not nvml.nvmlDeviceGetNvLinkState(handle, link):
                continue
            kind = nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link)
            if kind == _SWITCH:
                to_switches += 1
                continue
            bus = _bus(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))
        except _absent(nvml):  # the GPU has no such link
            continue
        if bus in buses:
            to_gpus[buses.index(bus)] += 1
    return to_gpus, to_switches


def _absent(nvml: ModuleType) -> tuple[type[Exception], ...]:
    """Errors by which NVML says that a device does not have a link or a set of its kind."""
    return nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument


def _gpu(nvml: ModuleType, number: int, handle: Any) -> Gpu:
    cpus = _set(nvml, "nvmlDeviceGetCpuAffinity", handle, _WORDS)
    nodes = _set(nvml, "nvmlDeviceGetMemoryAffinity", handle, _WORDS, 0)
    return Gpu(
        number=number,
        model=model_of(_text(nvml.nvmlDeviceGetName(handle))),
        cpus=spans_of(cpus),
        numa_nodes=tuple(nodes),
        pci_address=bus_address(_bus(nvml.nvmlDeviceGetPciInfo(handle))),
    )


def _set(nvml: ModuleType, call: str, *arguments: Any) -> list[int]:
    """Numbers whose bits are set; none where the machine does not say."""
    try:
        words = getattr(nvml, call)(*arguments)
    except _absent(nvml):
        return []
    return [
        place * _WORD_BITS + bit
        for place, word in enumerate(words)
        for bit in range(_WORD_BITS)
        if int(word) >> bit & 1
    ]


def _bus(info: Any) -> str:
    return _text(info.busId).lower()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
