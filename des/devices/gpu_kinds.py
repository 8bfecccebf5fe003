"""Kinds of GPU: peaks, memory, NVLinks and PCIe of data sheets, a row and a source for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from des.base.checks import nearest
from des.devices.gpu_ports import GpuPorts
from des.job.precision import Precision

_NO_PRODUCT = "east_west_120"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuKind:
    """Data sheet of a GPU: dense 16-bit peak without sparsity, memory, its bandwidth and ports.

    The peak is that of BF16, or of FP16 where there is no BF16; ``low_peaks_flops_per_s`` are those
    of the lower precisions that it has, dense as well.
    """

    name: str
    peak_flops_per_s: float
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float
    ports: GpuPorts
    source: str
    low_peaks_flops_per_s: tuple[tuple[Precision, float], ...] = ()

    @property
    def is_product(self) -> bool:
        """Whether it can be bought, so that its kernels are known."""
        return self.name != _NO_PRODUCT

    def peak_in(self, precision: Precision) -> float:
        """Dense peak in a precision. [FLOP/s]

        Raises
        ------
        ValueError
            If the kind lacks it; the message lists those that it has.
        """
        peaks = {"bf16": self.peak_flops_per_s, **dict(self.low_peaks_flops_per_s)}
        if precision not in peaks:
            raise ValueError(
                f"GPU {self.name}: precision must be one of {', '.join(peaks)}; got {precision}"
            )
        return peaks[precision]


_PCIE_BYTES_PER_S = {3: 15.75e9, 4: 31.5e9, 5: 63e9}
"""16 lanes one way, after the 128b/130b code (PCI-SIG, base specifications 3.0, 4.0, 5.0)."""

_ROWS: tuple[tuple[str, str, float, float, float, int, float, int, str], ...] = (
    ("v100_32", "v100", 125, 32, 900, 6, 25, 3,
     "NVIDIA, V100 data sheet (January 2020), SXM2: FP16; 6 NVLinks, 300 GB/s together"),
    ("a100_40", "a100", 312, 40, 1555, 12, 25, 4,
     "NVIDIA, A100 data sheet (June 2021), 40 GB SXM: 12 NVLinks, 600 GB/s together"),
    ("a100_80", "a100", 312, 80, 2039, 12, 25, 4,
     "NVIDIA, A100 data sheet (June 2021), 80 GB SXM: 12 NVLinks, 600 GB/s together"),
    ("h100", "h100", 989.5, 80, 3350, 18, 25, 5,
     "NVIDIA, H100 data sheet, SXM: half of 1,979 with sparsity; 18 NVLinks, 900 GB/s"),
    ("h200", "h200", 989.5, 141, 4800, 18, 25, 5,
     "NVIDIA, H200 data sheet, SXM: half of 1,979 with sparsity; 18 NVLinks, 900 GB/s"),
    ("gh200", "gh200", 990, 96, 4000, 18, 25, 5,
     "NVIDIA, GH200 data sheet, 96 GB: half of that with sparsity; 18 NVLinks, 900 GB/s"),
    ("a100_pcie", "a100_pcie", 312, 80, 1935, 12, 25, 4,
     "NVIDIA, A100 data sheet, 80 GB PCIe: 3 bridges between two GPUs, 600 GB/s together"),
    ("h100_nvl", "h100_nvl", 835.5, 94, 3900, 12, 25, 5,
     "NVIDIA, H100 data sheet, NVL: half of 1,671 with sparsity; 3 bridges of two, 600 GB/s"),
    ("h100_pcie", "h100_pcie", 756.5, 80, 2000, 12, 25, 5,
     "NVIDIA, H100 data sheet, PCIe: half of 1,513 with sparsity; 3 bridges of two, 600 GB/s"),
    ("a800", "a800", 312, 80, 2039, 8, 25, 4,
     "NVIDIA, A800 data sheet, 80 GB SXM: an A100 with 8 NVLinks, 400 GB/s together"),
    ("h800", "h800", 989.5, 80, 3350, 8, 25, 5,
     "NVIDIA, H800 data sheet, SXM: an H100 with 8 NVLinks, 400 GB/s together"),
    ("h20", "h20", 148, 96, 4000, 18, 25, 5,
     "NVIDIA, H20 data sheet, 96 GB: 148 dense; 18 NVLinks, 900 GB/s together"),
    ("b100", "b100", 1750, 192, 8000, 18, 50, 5,
     "NVIDIA, HGX B100 data sheet: half of 3,500 with sparsity; 18 NVLinks, 1.8 TB/s"),
    ("b200", "b200", 2250, 180, 8000, 18, 50, 5,
     "NVIDIA, DGX B200 data sheet, an eighth of it: half of 4,500; 18 NVLinks, 1.8 TB/s"),
    ("gb200", "gb200", 2500, 186, 8000, 18, 50, 5,
     "NVIDIA, GB200 NVL72 data sheet, a 72nd of it: half of 5,000; 18 NVLinks, 1.8 TB/s"),
    ("b300", "b300", 2250, 288, 8000, 18, 50, 5,
     "NVIDIA, DGX B300 data sheet, an eighth of it: half of 4,500; 18 NVLinks, 1.8 TB/s"),
    ("gb300", "gb300", 2500, 279, 8000, 18, 50, 5,
     "NVIDIA, GB300 NVL72 data sheet, a 72nd of it: half of 5,000; 18 NVLinks, 1.8 TB/s"),
    ("a30", "a30", 165, 24, 933, 4, 25, 4,
     "NVIDIA, A30 data sheet: 165 dense; a bridge of 200 GB/s"),
    ("a40", "a40", 149.7, 48, 696, 4, 14.0625, 4,
     "NVIDIA, A40 data sheet: 149.7 dense; a bridge of 112.5 GB/s"),
    ("l40", "l40", 181.05, 48, 864, 0, 0, 4,
     "NVIDIA, L40 data sheet: 181.05 dense; no NVLink"),
    ("l40s", "l40s", 362.05, 48, 864, 0, 0, 4,
     "NVIDIA, L40S data sheet: 362.05 dense; no NVLink"),
    ("l4", "l4", 121, 24, 300, 0, 0, 4,
     "NVIDIA, L4 data sheet: half of 242 with sparsity; no NVLink"),
    ("t4", "t4", 65, 16, 300, 0, 0, 3,
     "NVIDIA, T4 data sheet: 65 FP16; no NVLink"),
    ("v100_16", "v100", 125, 16, 900, 6, 25, 3,
     "NVIDIA, V100 data sheet (January 2020), SXM2: FP16; 6 NVLinks, 300 GB/s together"),
    ("rtx_3090", "rtx3090", 71, 24, 936, 4, 14.0625, 4,
     "NVIDIA, GA102 white paper: 71 dense, sums in FP32; a bridge of 112.5 GB/s"),
    ("rtx_4090", "rtx4090", 165.2, 24, 1008, 0, 0, 4,
     "NVIDIA, Ada white paper: 165.2 dense, sums in FP32; no NVLink"),
    ("rtx_a6000", "rtxa6000", 154.8, 48, 768, 4, 14.0625, 4,
     "NVIDIA, GA102 white paper, RTX A6000: 154.8 dense; a bridge of 112.5 GB/s"),
    ("rtx_6000_ada", "rtx6000ada", 364.2, 48, 960, 0, 0, 4,
     "NVIDIA, RTX 6000 Ada data sheet: a quarter of 1,457 FP8 with sparsity; no NVLink"),
    ("mi250x", "mi250x", 383, 128, 3276.8, 0, 0, 4,
     "AMD, Instinct MI250X data sheet, a module of two dies: BF16"),
    ("mi300x", "mi300x", 1307.4, 192, 5300, 0, 0, 5,
     "AMD, Instinct MI300X data sheet (2023): BF16 without sparsity"),
    ("mi325x", "mi325x", 1307.4, 256, 6000, 0, 0, 5,
     "AMD, Instinct MI325X data sheet (2024): BF16 without sparsity"),
    (_NO_PRODUCT, "generic", 120, 80, 1600, 18, 25, 4,
     "the GPU of the world East-Central-West; no product: NVLinks of the second to fourth "
     "generation, PCIe 4.0"),
)  # fmt: skip
"""Name, name of the ports (that of servers), peak [TFLOP/s], memory [GB], its bandwidth [GB/s],
NVLinks, rate of one each way [GB/s], generation of PCIe, source."""


_LOW_PEAKS: Mapping[str, tuple[float, float]] = MappingProxyType({
    "h100": (1979, 0), "h200": (1979, 0), "gh200": (1979, 0), "h800": (1979, 0),
    "h100_nvl": (1670.5, 0), "h100_pcie": (1513, 0), "h20": (296, 0),
    "b100": (3500, 7000), "b200": (4500, 9000), "gb200": (5000, 10000),
    "b300": (4500, 13500), "gb300": (5000, 15000),
    "l40": (362, 0), "l40s": (733, 0), "l4": (242.5, 0),
    "rtx_4090": (330.3, 0), "rtx_6000_ada": (728.5, 0),
    "mi300x": (2614.9, 0), "mi325x": (2614.9, 0),
})  # fmt: skip
"""Dense peaks in FP8, summed up in FP32, and in NVFP4 (0: it has none) of the same data sheets.
Where these are with sparsity it is half of them, but for FP4 of B300 and GB300, which is given
dense. Kinds with NVFP4 do MXFP8 at the peak of FP8; kinds without a row have neither. [TFLOP/s]
"""


def _low_peaks(name: str) -> tuple[tuple[Precision, float], ...]:
    fp8, fp4 = (1e12 * peak for peak in _LOW_PEAKS.get(name, (0, 0)))
    if fp4:
        return (("fp8", fp8), ("mxfp8", fp8), ("nvfp4", fp4))
    return (("fp8", fp8),) if fp8 else ()


def _ports(name: str, links: int, gigabytes_per_s: float, pcie: int) -> GpuPorts:
    return GpuPorts(
        name=name,
        nvlink_bytes_per_s=gigabytes_per_s * 1e9,
        most_nvlinks=links,
        pcie_bytes_per_s=_PCIE_BYTES_PER_S[pcie],
    )


GPU_KINDS = MappingProxyType(
    {
        name: GpuKind(
            name=name,
            peak_flops_per_s=peak * 1e12,
            memory_bytes=memory * 1e9,
            memory_bandwidth_bytes_per_s=bandwidth * 1e9,
            ports=_ports(ports, links, rate, pcie),
            source=source,
            low_peaks_flops_per_s=_low_peaks(name),
        )
        for name, ports, peak, memory, bandwidth, links, rate, pcie, source in _ROWS
    }
)
"""Kinds by name, as the key ``gpu`` of a topology file takes them."""

_OTHER_NAMES = MappingProxyType(
    {
        **{kind.ports.name: name for name, kind in GPU_KINDS.items() if name != _NO_PRODUCT},
        **{"v100": "v100_32", "a100": "a100_80", "a6000": "rtx_a6000"},
    }
)
"""Names that servers give kinds, and others in use; A100 and V100 are those of most memory."""

GPU_PORTS = MappingProxyType(
    {
        "p100": _ports("p100", 4, 20, 3),  # NVIDIA, Tesla P100 white paper; it has no tensor cores
        **{kind.ports.name: kind.ports for kind in GPU_KINDS.values()},
    }
)
"""Ports by the names that servers have; ``generic`` stands for none of them, and is taken by its
name alone.
"""


def gpu_kind_named(domain: str, name: str) -> GpuKind:
    """Look up the kind of the GPUs of a domain.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    kind = GPU_KINDS.get(_OTHER_NAMES.get(name, name))
    if kind is None:
        known = ", ".join(GPU_KINDS)
        raise ValueError(f"domain {domain}: gpu must be one of {known}; got {name!r}")
    return kind


def gpu_ports_named(name: str | None) -> GpuPorts:
    """Look up the ports of a kind of GPU, by any of its names.

    Raises
    ------
    ValueError
        If the model is not known; the message lists those that are. No other stands in for it:
        ``generic`` must be asked for.
    """
    is_product = name in GPU_KINDS and name != _NO_PRODUCT
    known = GPU_KINDS[name].ports if name and is_product else GPU_PORTS.get(name or "")
    if known is None:
        meant = f" ({nearest(name, list(GPU_PORTS))})" if name else ""
        raise ValueError(
            f"GPU model must be one of {', '.join(GPU_PORTS)}; got {name or 'none'}{meant}"
        )
    return known
