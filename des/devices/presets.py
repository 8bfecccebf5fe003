"""Kinds of servers by name, each with its source: GPUs, network cards and NUMA nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from des.base.checks import require_known
from des.devices.assembly import (
    Cards,
    assembled,
    cards_of,
    gpu_like,
    halves,
    two_processors,
    within_halves,
)
from des.devices.patterns import hybrid_cube_mesh, nvswitch, pcie_pairs, pcie_two_numa, square
from des.devices.server import Gpu, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    """A kind of server: what it is, where its figures are from, and how to make one."""

    about: str
    source: str
    make: Callable[[], Server]


def simulated(kind: str) -> Server:
    """Make an idle server of a kind, all memory of its NUMA nodes free.

    Raises
    ------
    ValueError
        If there is no such kind; the message hints at one, or lists all.

    Examples
    --------
    >>> simulated("dgx-h100").nearest_nics(5)[1][0].name
    'NIC5'
    """
    require_known("server: unknown kind", kind, KINDS)
    return replace(KINDS[kind].make(), name=kind)


def _dgx_1(classes: list[list[str]], gpu: Gpu) -> Server:
    return assembled(
        classes,
        gpu=gpu,
        node_of_gpu=halves(8),
        nodes=two_processors(20, 256),
        cards=cards_of(4, 100, "PIX", within_halves(4, "PHB"), gpus_each=2),
    )


def _dgx_a100() -> Server:
    return assembled(
        nvswitch(8, 12),
        gpu=gpu_like("a100", 25),
        node_of_gpu=(3, 3, 1, 1, 7, 7, 5, 5),
        nodes=two_processors(64, 1024, parts=4, far=32),
        cards=Cards(
            count=8,
            gbit_per_s=200,
            to_gpu=lambda gpu, card: "PXB" if gpu // 2 == card // 2 else "SYS",
            to_card=lambda one, other: "PXB" if one // 2 == other // 2 else "SYS",
        ),
    )


def _dgx_2() -> Server:
    """Sixteen GPUs; two at a switch with a card, two such switches at one more."""

    def far(one: int, other: int) -> str:
        if one // 2 == other // 2:
            return "PXB"
        return "NODE" if one // 4 == other // 4 else "SYS"

    return assembled(
        nvswitch(16, 6),
        gpu=gpu_like("v100", 25),
        node_of_gpu=halves(16),
        nodes=two_processors(24, 768),
        cards=cards_of(8, 100, "PIX", far, gpus_each=2),
    )


def _nvlink_of_8(model: str, *, token: str, nvlink_gb_per_s: float, cores: int) -> Server:
    return assembled(
        nvswitch(8, 18),
        gpu=gpu_like(model, nvlink_gb_per_s),
        node_of_gpu=halves(8),
        nodes=two_processors(cores, 1024),
        cards=cards_of(8, 400, token, within_halves(8, "NODE")),
    )


def _grace_tray() -> Server:
    """Two Grace processors with two GPUs each, one tray of the rack."""
    return assembled(
        nvswitch(4, 18),
        gpu=gpu_like("gb200", 50),
        node_of_gpu=halves(4),
        nodes=two_processors(72, 480, threads=1, far=40),
        cards=cards_of(4, 400, "NODE", within_halves(4, "NODE")),
    )


def _a100_pcie(classes: list[list[str]], nvlink_gb_per_s: float | None = None) -> Server:
    """GPUs in slots of a server of two processors of 32 cores, a card for every two GPUs."""
    count = len(classes)
    return assembled(
        classes,
        gpu=gpu_like("a100_pcie", nvlink_gb_per_s),
        node_of_gpu=halves(count),
        nodes=two_processors(32, 256),
        cards=cards_of(count // 2, 200, "PIX", within_halves(count // 2, "NODE"), gpus_each=2),
    )


def _rtx_4090() -> Server:
    """Every GPU at a root of its own; the two ports of a card at that of the seventh."""
    return assembled(
        square(8, lambda one, other: "SYS"),
        gpu=gpu_like("rtx4090"),
        node_of_gpu=halves(8),
        nodes=two_processors(56, 512),
        cards=Cards(
            count=2,
            gbit_per_s=100,
            to_gpu=lambda gpu, card: "PHB" if gpu == 6 else "SYS",
            to_card=lambda one, other: "PIX",
        ),
    )


def _plain(classes: Callable[[], list[list[str]]]) -> Server:
    """Pattern of links alone: no model of GPU, no cards, no CPUs."""
    return assembled(classes(), gpu=Gpu(number=0), node_of_gpu=halves(8))


_PRINTED = "matrix as public outputs of nvidia-smi topo -m show it; "
_OURS = "no product; made up as an example"

KINDS: Mapping[str, ServerKind] = MappingProxyType(
    {
        "dgx-1-p100": ServerKind(
            about="8 P100, single NVLinks in a hybrid cube mesh, 4 cards of 100 Gbit/s",
            source="NVIDIA, DGX-1 white paper (2017): 2 Xeon E5-2698 v4, 512 GB",
            make=partial(_dgx_1, hybrid_cube_mesh(is_single=True), gpu_like("p100", 20)),
        ),
        "dgx-1-v100": ServerKind(
            about="8 V100, one or two NVLinks in a hybrid cube mesh, 4 cards of 100 Gbit/s",
            source="NVIDIA, DGX-1 with V100 white paper (2017): 2 Xeon E5-2698 v4, 512 GB",
            make=partial(_dgx_1, hybrid_cube_mesh(), gpu_like("v100", 25)),
        ),
        "dgx-2": ServerKind(
            about="16 V100 at NVSwitches, 8 cards of 100 Gbit/s for computing",
            source=_PRINTED + "DGX-2 user guide: 2 Xeon 8168, 1.5 TB",
            make=_dgx_2,
        ),
        "dgx-a100": ServerKind(
            about="8 A100 at NVSwitches, 8 cards of 200 Gbit/s for computing, 8 NUMA nodes",
            source=_PRINTED + "DGX A100 user guide: 2 EPYC 7742, 2 TB; memory of NPS4",
            make=_dgx_a100,
        ),
        "dgx-h100": ServerKind(
            about="8 H100 at NVSwitches, 8 cards of 400 Gbit/s for computing",
            source=_PRINTED + "DGX H100 user guide: 2 Xeon 8480C, 2 TB",
            make=partial(_nvlink_of_8, "h100", token="PXB", nvlink_gb_per_s=25, cores=56),
        ),
        "dgx-h200": ServerKind(
            about="8 H200 at NVSwitches, 8 cards of 400 Gbit/s for computing",
            source="NVIDIA, DGX H200 data sheet: 2 Xeon 8480C, 2 TB; matrix of the DGX H100",
            make=partial(_nvlink_of_8, "h200", token="PXB", nvlink_gb_per_s=25, cores=56),
        ),
        "hgx-h100": ServerKind(
            about="8 H100 at NVSwitches, each card of 400 Gbit/s one bridge from its GPU",
            source=_PRINTED + "2 processors of 48 cores; ASSUMED: 2 TB",
            make=partial(_nvlink_of_8, "h100", token="PIX", nvlink_gb_per_s=25, cores=48),
        ),
        "dgx-b200": ServerKind(
            about="8 B200 at NVSwitches, 8 cards of 400 Gbit/s for computing",
            source="NVIDIA, DGX B200 data sheet: 2 Xeon 8570; ASSUMED: 2 TB, as in DGX H100",
            make=partial(_nvlink_of_8, "b200", token="PXB", nvlink_gb_per_s=50, cores=56),
        ),
        "gb200-nvl72": ServerKind(
            about="one tray of the rack: 4 GPUs of its 72, 2 Grace, 4 cards of 400 Gbit/s",
            source="NVIDIA, GB200 NVL72 data sheet; distances as numactl prints of Grace",
            make=_grace_tray,
        ),
        "pcie-4": ServerKind(
            about="4 A100 in PCIe slots, two and two at a switch, a card each two",
            source=_OURS,
            make=partial(_a100_pcie, pcie_two_numa(4)),
        ),
        "pcie-8": ServerKind(
            about="8 A100 in PCIe slots, two and two at a switch, a card each two",
            source=_OURS,
            make=partial(_a100_pcie, pcie_two_numa(8)),
        ),
        "a100-pairs-4": ServerKind(
            about="4 A100 in PCIe slots, two and two bridged by 12 NVLinks, a card each two",
            source="NVIDIA, A100 80GB PCIe product brief: three bridges of 4; else an example",
            make=partial(_a100_pcie, pcie_pairs(4, 12), 25),
        ),
        "rtx-4090-8": ServerKind(
            about="8 RTX 4090 that all reach each other by SYS, a card of two ports",
            source=_PRINTED + "2 processors of 56 cores; ASSUMED: 1 TB, 100 Gbit/s",
            make=_rtx_4090,
        ),
        "nvswitch": ServerKind(
            about="pattern of links alone: 8 GPUs, 12 NVLinks each, at switches",
            source=_OURS,
            make=partial(_plain, nvswitch),
        ),
        "hybrid_cube_mesh": ServerKind(
            about="pattern of links alone: 8 GPUs as in dgx-1-v100",
            source="NVIDIA, DGX-1 with V100 white paper (2017)",
            make=partial(_plain, hybrid_cube_mesh),
        ),
        "pcie_two_numa": ServerKind(
            about="pattern of links alone: 8 GPUs, half at each processor, two and two at a switch",
            source=_OURS,
            make=partial(_plain, pcie_two_numa),
        ),
        "pcie_pairs": ServerKind(
            about="pattern of links alone: the same with NVLink bridges of 4 for every two",
            source=_OURS,
            make=partial(_plain, pcie_pairs),
        ),
    }
)
"""Kinds of servers. Cards for storage are left out."""

KIND_NAMES = tuple(KINDS)
