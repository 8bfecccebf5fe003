"""Ports of GPU models: NVLink and PCIe line rates of data sheets, and what a path takes of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from des.base.checks import nearest
from des.devices.closeness import Relation, num_nvlinks, relation

_PCIE_3_BYTES_PER_S, _PCIE_4_BYTES_PER_S, _PCIE_5_BYTES_PER_S = 15.75e9, 31.5e9, 63e9
"""16 lanes one way, after the 128b/130b code (PCI-SIG, base specifications 3.0, 4.0, 5.0)."""

PATH_FACTORS: Mapping[Relation, float] = MappingProxyType(
    {"PIX": 1.0, "PXB": 1.0, "PHB": 1.0, "NODE": 1.0, "SYS": 10 / 24}
)
"""Parts of the PCIe rate that paths leave: all of it inside a NUMA node, 10 of 24 GB/s between.

NCCL (``graph/topo.h``) has 10 GB/s between Intel's Skylake processors, and 12 GB/s for PCIe 3.0,
24 for 4.0. Between newer processors there is more; ASSUMED: the link of processors grows no faster
than PCIe.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPorts:
    """Line rates of a GPU's ports, each way at once. [bytes/s]"""

    name: str
    nvlink_bytes_per_s: float
    most_nvlinks: int
    pcie_bytes_per_s: float
    source: str

    def line_rate_bytes_per_s(self, token: str) -> float:
        """Line rate of a path of ``nvidia-smi topo -m`` to another GPU of the same model.

        Raises
        ------
        ValueError
            If the token is none of two GPUs, or has more NVLinks than the model.

        Examples
        --------
        >>> GPU_PORTS["a100"].line_rate_bytes_per_s("NV12") / 1e9
        300.0
        """
        kind = relation(token)
        if kind == "X":
            raise ValueError(f"GPU model {self.name}: token must be one of two GPUs, got {token!r}")
        count = num_nvlinks(token)
        if count > self.most_nvlinks:
            raise ValueError(
                f"GPU model {self.name}: token must have at most {self.most_nvlinks} NVLinks, "
                f"got {token!r}"
            )
        if count:
            return count * self.nvlink_bytes_per_s
        return self.pcie_bytes_per_s * PATH_FACTORS[kind]


def _ports(name: str, links: int, gigabytes: float, pcie: float, source: str) -> GpuPorts:
    return GpuPorts(
        name=name,
        nvlink_bytes_per_s=gigabytes * 1e9,
        most_nvlinks=links,
        pcie_bytes_per_s=pcie,
        source=source,
    )


_MODELS = (
    _ports("p100", 4, 20, _PCIE_3_BYTES_PER_S,
           "NVIDIA, Tesla P100 white paper: 4 NVLinks of the first generation, 160 GB/s together"),
    _ports("v100", 6, 25, _PCIE_3_BYTES_PER_S,
           "NVIDIA, V100 data sheet, SXM2: 6 NVLinks of the second generation, 300 GB/s together"),
    _ports("a100", 12, 25, _PCIE_4_BYTES_PER_S,
           "NVIDIA, A100 data sheet, SXM: 12 NVLinks of the third generation, 600 GB/s together"),
    _ports("a100_pcie", 12, 25, _PCIE_4_BYTES_PER_S,
           "NVIDIA, A100 data sheet, PCIe: 3 bridges between two GPUs, 600 GB/s together"),
    _ports("h100", 18, 25, _PCIE_5_BYTES_PER_S,
           "NVIDIA, H100 data sheet, SXM: 18 NVLinks of the fourth generation, 900 GB/s together"),
    _ports("h100_nvl", 12, 25, _PCIE_5_BYTES_PER_S,
           "NVIDIA, H100 data sheet, NVL: 3 bridges between two GPUs, 600 GB/s together"),
    _ports("h100_pcie", 12, 25, _PCIE_5_BYTES_PER_S,
           "NVIDIA, H100 data sheet, PCIe: 3 bridges between two GPUs, 600 GB/s together"),
    _ports("h200", 18, 25, _PCIE_5_BYTES_PER_S,
           "NVIDIA, H200 data sheet, SXM: 18 NVLinks of the fourth generation, 900 GB/s together"),
    _ports("gh200", 18, 25, _PCIE_5_BYTES_PER_S,
           "NVIDIA, GH200 data sheet: 18 NVLinks of the fourth generation, 900 GB/s together"),
    _ports("b200", 18, 50, _PCIE_5_BYTES_PER_S,
           "NVIDIA, DGX B200 data sheet: 18 NVLinks of the fifth generation, 1.8 TB/s together; "
           "PCIe 5.0"),
    _ports("gb200", 18, 50, _PCIE_5_BYTES_PER_S,
           "NVIDIA, GB200 NVL72 data sheet: 18 NVLinks of the fifth generation, 1.8 TB/s together"),
    _ports("rtxa6000", 4, 14.0625, _PCIE_4_BYTES_PER_S,
           "NVIDIA, RTX A6000 data sheet: a bridge of 4 NVLinks, 112.5 GB/s together"),
    _ports("rtx6000ada", 0, 0, _PCIE_4_BYTES_PER_S,
           "NVIDIA, RTX 6000 Ada data sheet: no NVLink"),
    _ports("rtx4090", 0, 0, _PCIE_4_BYTES_PER_S, "NVIDIA, Ada white paper: no NVLink"),
    _ports("generic", 18, 25, _PCIE_4_BYTES_PER_S,
           "no product: NVLinks of the second to fourth generation, PCIe 4.0"),
)  # fmt: skip

GPU_PORTS = MappingProxyType({model.name: model for model in _MODELS})
"""Ports of GPU models by name; ``generic`` stands for none of them, and is taken by its name alone.
"""

_OTHER_NAMES = MappingProxyType({"v100_32": "v100", "a100_40": "a100", "a100_80": "a100"})
"""Names of models in topology files whose memory, not whose ports, they tell apart."""


def gpu_ports_named(name: str | None) -> GpuPorts:
    """Look up the ports of a GPU model.

    Raises
    ------
    ValueError
        If the model is not known; the message lists those that are. No other stands in for it:
        ``generic`` must be asked for.
    """
    known = None if name is None else GPU_PORTS.get(_OTHER_NAMES.get(name, name))
    if known is None:
        meant = f" ({nearest(name, list(GPU_PORTS))})" if name else ""
        raise ValueError(
            f"GPU model must be one of {', '.join(GPU_PORTS)}; got {name or 'none'}{meant}"
        )
    return known
