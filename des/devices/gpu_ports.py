"""Ports of a GPU: NVLink and PCIe line rates, what a path takes of them, and what it is like."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from des.devices.closeness import XGMI_TOKENS, Relation, num_nvlinks, relation


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkClass:
    """Quality of the connection of two GPUs, each way at once."""

    bandwidth_bytes_per_s: float
    latency_s: float


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

    def line_rate_bytes_per_s(self, token: str) -> float:
        """Line rate of a path of ``nvidia-smi topo -m`` to another GPU of the same model.

        Raises
        ------
        ValueError
            If the token is none of two GPUs, or has more NVLinks than the model.

        Examples
        --------
        >>> ports = GpuPorts(
        ...     name="a100", nvlink_bytes_per_s=25e9, most_nvlinks=12, pcie_bytes_per_s=31.5e9
        ... )
        >>> ports.line_rate_bytes_per_s("NV12") / 1e9
        300.0
        """
        kind = relation(token)
        if token in XGMI_TOKENS:
            raise ValueError(f"GPU model {self.name}: no line rate of {token} is known")
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
