"""The GPUs of a domain and what joins every two of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Self

import numpy as np

from des.base.checks import require_non_negative, require_positive
from des.base.lazy import lazy_imports
from des.devices.closeness import XGMI_TOKENS
from des.devices.gpu_ports import LinkClass

with lazy_imports(__name__):
    from des.devices import rings
    from des.devices.link_figures import DeviceFigures
    from des.devices.server import Server

MOST_GPUS = 16
"""Most GPUs of a server. The rings of all subsets are computed."""

GROUP_SIZES = (1, 2, 4, 8)
"""GPUs that share layers or microbatches."""


_NVLINK_LATENCY_S, _PCI_LATENCY_S = 3.4e-6, 5.7e-6
MOST_NVLINKS = 18

_PCI_RATES = {"PIX": 24e9, "PXB": 24e9, "PHB": 20e9, "NODE": 20e9, "SYS": 10e9, "SOC": 10e9}
LINK_CLASSES = MappingProxyType(
    {
        **{
            f"NV{count}": LinkClass(bandwidth_bytes_per_s=count * 20e9, latency_s=_NVLINK_LATENCY_S)
            for count in range(1, MOST_NVLINKS + 1)
        },
        **{
            token: LinkClass(bandwidth_bytes_per_s=rate, latency_s=_PCI_LATENCY_S)
            for token, rate in _PCI_RATES.items()
        },
        **{
            token: LinkClass(bandwidth_bytes_per_s=48e9, latency_s=_NVLINK_LATENCY_S * links)
            for links, token in enumerate(XGMI_TOKENS, start=1)
        },
    }
)
"""Classes as ``nvidia-smi topo -m`` names them, with the figures by which NCCL chooses its rings.

``NV#`` is # NVLinks, PIX at most one PCIe bridge, PXB several, PHB the host bridge of a
processor, NODE several host bridges of a NUMA node, SYS the link between processors. NCCL (2.18,
``graph/topo.h``, ``graph/tuning.cc``) reckons with 20 GB/s an NVLink of the A100's kind (line rate
25), 12 GB/s for PCIe 3.0 x16 (line rate 15.75), a sixth less through Intel's processors, 10 GB/s
between Skylake processors, and 3.4 us a step of a ring over NVLink, 5.7 us over PCIe. PCIe here is
4.0, twice 3.0. RCCL (``graph/topo.h``) reckons with 48 GB/s an XGMI link of the MI300X. ASSUMED:
that several host bridges of a node are as good as one, and that a step over an XGMI link takes as
long as one over NVLink.
"""


@dataclass(frozen=True, kw_only=True)
class GpuTopology:
    """Bandwidth and latency of every two GPUs of a domain, which are the same both ways.

    Attributes
    ----------
    bandwidth_bytes_per_s, latency_s
        One row per GPU. The slowest of some pairs is the one of least bandwidth, among equals that
        of most latency: rings are chosen by bandwidth. The diagonal means nothing.
    numa_of_gpu
        NUMA node of every GPU.
    free
        Numbers of the GPUs that may be used, in rising order; others have taken the rest.
    """

    bandwidth_bytes_per_s: tuple[tuple[float, ...], ...]
    latency_s: tuple[tuple[float, ...], ...]
    numa_of_gpu: tuple[int, ...]
    free: tuple[int, ...]

    def __post_init__(self) -> None:
        count = len(self.numa_of_gpu)
        if not 1 <= count <= MOST_GPUS:
            raise ValueError(f"GPU topology: there must be 1 to {MOST_GPUS} GPUs, got {count}")
        _check_matrix("bandwidth_bytes_per_s", self.bandwidth_bytes_per_s, count)
        _check_matrix("latency_s", self.latency_s, count)
        for numa in self.numa_of_gpu:
            if isinstance(numa, bool) or not isinstance(numa, int) or numa < 0:
                raise ValueError(
                    "GPU topology: numa_of_gpu must be whole numbers of at least 0, "
                    f"got {self.numa_of_gpu!r}"
                )
        allowed = set(range(count))
        if not self.free or list(self.free) != sorted(set(self.free) & allowed):
            raise ValueError(
                f"GPU topology: free must be one or more different GPUs from 0 to {count - 1} in "
                f"rising order, got {self.free!r}"
            )

    @classmethod
    def of_classes(
        cls,
        classes: Sequence[Sequence[str]],
        *,
        numa_of_gpu: Sequence[int] | None = None,
        free: Sequence[int] | None = None,
    ) -> Self:
        """Make one from the matrix that ``nvidia-smi topo -m`` prints; ``X`` on the diagonal.

        Without NUMA nodes, GPUs that are not joined by SYS alone are of one node.

        Raises
        ------
        ValueError
            If a class is unknown, or the matrix is not square and symmetric.
        """
        count = len(classes)
        if any(len(row) != count for row in classes):
            raise ValueError(
                f"GPU topology: classes must be {count} rows of {count}, "
                f"got rows of {[len(row) for row in classes]}"
            )
        for one in range(count):
            for other in range(count):
                name = classes[one][other]
                if (name != "X") if one == other else (name not in LINK_CLASSES):
                    raise ValueError(
                        f"GPU topology: class of GPUs {one} and {other} must be "
                        + ("X" if one == other else f"one of {', '.join(LINK_CLASSES)}")
                        + f", got {name!r}"
                    )
        own = LinkClass(bandwidth_bytes_per_s=1.0, latency_s=0.0)
        links = [[LINK_CLASSES.get(name, own) for name in row] for row in classes]
        return cls._of_links(
            links, _numa_nodes(classes) if numa_of_gpu is None else numa_of_gpu, free
        )

    @classmethod
    def of_server(cls, server: "Server", *, figures: "DeviceFigures | None" = None) -> Self:
        """Make one of a server's GPUs, by their places in it, in whatever order they are numbered.

        The NUMA node of a GPU is the first one near it; where the server does not say, as in
        `of_classes`. Links have the figures of `LINK_CLASSES`, or those of the GPUs' models.

        Raises
        ------
        ValueError
            If figures of models are given, and there are none of a GPU's model or token.
        """
        known = [gpu.numa_nodes[0] for gpu in server.gpus if gpu.numa_nodes]
        numa_of_gpu = known if len(known) == server.num_gpus else None
        if figures is None:
            return cls.of_classes(server.gpu_tokens, numa_of_gpu=numa_of_gpu)
        links = figures.links_of(server)
        return cls._of_links(links, numa_of_gpu or _numa_nodes(server.gpu_tokens))

    @classmethod
    def alike(cls, num_gpus: int, link: LinkClass) -> Self:
        """Make one of free GPUs of one NUMA node, every two of them joined by the same link.

        Examples
        --------
        >>> link = LinkClass(bandwidth_bytes_per_s=50e9, latency_s=5e-7)
        >>> GpuTopology.alike(4, link).best_groups[0][2, 1] / 1e9
        np.float64(50.0)
        """
        return cls._of_links([[link] * num_gpus] * num_gpus, [0] * num_gpus)

    @classmethod
    def _of_links(
        cls,
        links: Sequence[Sequence[LinkClass]],
        numa_of_gpu: Sequence[int],
        free: Sequence[int] | None = None,
    ) -> Self:
        return cls(
            bandwidth_bytes_per_s=tuple(
                tuple(link.bandwidth_bytes_per_s for link in row) for row in links
            ),
            latency_s=tuple(tuple(link.latency_s for link in row) for row in links),
            numa_of_gpu=tuple(numa_of_gpu),
            free=tuple(range(len(links)) if free is None else free),
        )

    @property
    def num_gpus(self) -> int:
        """All GPUs, taken ones too."""
        return len(self.numa_of_gpu)

    @cached_property
    def free_mask(self) -> int:
        """The free GPUs as a set of bits."""
        return sum(1 << gpu for gpu in self.free)

    @cached_property
    def link_order(self) -> tuple[tuple[float, float], ...]:
        """All different (negative bandwidth, latency) of pairs, the fastest first."""
        pairs = {
            (-self.bandwidth_bytes_per_s[one][other], self.latency_s[one][other])
            for one in range(self.num_gpus)
            for other in range(one)
        }
        return tuple(sorted(pairs))

    @cached_property
    def wires(self) -> "rings.Wires":
        """Figures of pairs, and of the rings of all sets of GPUs."""
        bandwidths, latencies_s = self._of_ranks
        of_sets = self._ring_ranks
        return rings.Wires(
            bandwidth_bytes_per_s=np.array(self.bandwidth_bytes_per_s),
            latency_s=np.array(self.latency_s),
            ring_bandwidth_bytes_per_s=bandwidths[of_sets],
            ring_latency_s=latencies_s[of_sets],
        )

    @cached_property
    def best_groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Bandwidth and latency of the slowest of 1, 2, ... disjoint rings, the best there are.

        Each (4, n + 1): by size of the groups, as in `GROUP_SIZES`, and number of groups. Not a
        number where the free GPUs are too few. The numbering of the GPUs makes no difference.
        """
        bandwidths, latencies_s = self._of_ranks
        found = np.full((2, len(GROUP_SIZES), self.num_gpus + 1), np.nan)
        for row, size in enumerate(GROUP_SIZES):
            least = rings.partition_ranks(self._ring_ranks, self.free_mask, size, self.num_gpus)
            can_be = least != rings.NO_RING
            found[0, row, can_be] = bandwidths[least[can_be]]
            found[1, row, can_be] = latencies_s[least[can_be]]
        return found[0], found[1]

    @cached_property
    def _of_ranks(self) -> tuple[np.ndarray, np.ndarray]:
        """Bandwidth and latency by rank; the last, rank -1, those of a single GPU."""
        order = self.link_order
        return (
            np.array([-bandwidth for bandwidth, _ in order] + [np.inf]),
            np.array([latency_s for _, latency_s in order] + [0.0]),
        )

    @cached_property
    def _ring_ranks(self) -> np.ndarray:
        rank_of = {link: rank for rank, link in enumerate(self.link_order)}
        ranks = np.zeros((self.num_gpus, self.num_gpus), dtype=np.int64)
        for one in range(self.num_gpus):
            for other in range(one):
                link = (-self.bandwidth_bytes_per_s[one][other], self.latency_s[one][other])
                ranks[one, other] = ranks[other, one] = rank_of[link]
        return rings.ring_ranks(ranks)


def _check_matrix(field: str, rows: tuple[tuple[float, ...], ...], count: int) -> None:
    if not isinstance(rows, tuple) or [len(row) for row in rows] != [count] * count:
        raise ValueError(f"GPU topology: {field} must be {count} rows of {count}, got {rows!r}")
    require = require_positive if field == "bandwidth_bytes_per_s" else require_non_negative
    for one in range(count):
        for other in range(one):
            require(f"GPU topology, GPUs {one} and {other}", field, rows[one][other])
            if rows[one][other] != rows[other][one]:
                raise ValueError(
                    f"GPU topology: {field} of GPUs {one} and {other} must be the same both ways, "
                    f"got {rows[one][other]!r} and {rows[other][one]!r}"
                )


def _numa_nodes(classes: Sequence[Sequence[str]]) -> list[int]:
    """Number nodes from 0: a GPU is of the first one it reaches over PCIe of that node."""
    near = {"PIX", "PXB", "PHB", "NODE"}
    nodes: list[int] = []
    for gpu, row in enumerate(classes):
        known = [nodes[other] for other in range(gpu) if row[other] in near]
        nodes.append(known[0] if known else len(set(nodes)))
    if "SYS" in {name for row in classes for name in row}:
        return nodes
    return [0] * len(nodes)
