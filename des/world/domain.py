"""Domains: data centres of equal GPUs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from des.base.checks import require_count, require_fraction, require_non_negative, require_positive
from des.world.access import OPEN, Access
from des.world.kernel_figures import KernelFigures
from des.world.layer_profiles import LayerProfile
from des.world.nodes import Nodes, rack_order

_IN_PLANS = ",|*"
"""Characters between the domains of plans as text, such as ``East*28,West*52 | North*80``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """One data centre: equal GPUs on one fast inner network, or on one in each of its ``nodes``.

    ``attainable_fraction`` is the part of the peak FLOP/s that dense transformer layers reach. A
    price is for one GPU; None means that it is not known (see `des.views.prices`). Without
    ``nodes`` all GPUs reach each other at the inner figures. Where ``kernels`` are known, times of
    layers come from their shapes, see `des.costs.layer_times`, and ``attainable_fraction`` is the
    share of that speed that the job has. A ``profile`` has measured times of layers; the kernels'
    figures are then those of the optimiser's step and of an iteration's overhead. ``gpu_kind`` is
    the GPUs' row of `des.devices.gpu_kinds`, which has their peaks in other precisions; None: they
    are of none. Domains of one ``site`` share its way to other sites, see `des.world.site_limits`;
    None: a site of its own.
    """

    name: str
    num_gpus: int
    gpu_peak_flops_per_s: float
    gpu_memory_bytes: float
    gpu_memory_bandwidth_bytes_per_s: float
    attainable_fraction: float
    intra_bandwidth_bytes_per_s: float
    intra_latency_s: float
    gpu_price_usd_per_hour: float | None = None
    kernels: KernelFigures | None = None
    nodes: Nodes | None = None
    profile: LayerProfile | None = None
    site: str | None = None
    access: Access = OPEN
    gpu_kind: str | None = None

    def __post_init__(self) -> None:
        _require_name(self.name)
        owner = f"domain {self.name}"
        if self.site is not None and (not isinstance(self.site, str) or not self.site.strip()):
            raise ValueError(f"{owner}: site must be a non-empty text, got {self.site!r}")
        if self.gpu_kind is not None and not self.gpu_kind:
            raise ValueError(f"{owner}: gpu_kind must be a name or left out, got an empty text")
        self.access.check(owner)
        require_count(owner, "num_gpus", self.num_gpus)
        for field in (
            "gpu_peak_flops_per_s",
            "gpu_memory_bytes",
            "gpu_memory_bandwidth_bytes_per_s",
            "intra_bandwidth_bytes_per_s",
        ):
            require_positive(owner, field, getattr(self, field))
        require_fraction(owner, "attainable_fraction", self.attainable_fraction)
        require_non_negative(owner, "intra_latency_s", self.intra_latency_s)
        if self.gpu_price_usd_per_hour is not None:
            require_non_negative(owner, "gpu_price_usd_per_hour", self.gpu_price_usd_per_hour)
        if self.profile is not None and self.kernels is None:
            raise ValueError(f"{owner}: profile needs kernels, got none")
        if self.nodes is not None and self.num_gpus % self.nodes.gpus_per_node:
            raise ValueError(
                f"{owner}: num_gpus must be a whole multiple of nodes.gpus_per_node, "
                f"{self.nodes.gpus_per_node}; got {self.num_gpus}"
            )
        if self.nodes is not None and len(self.nodes.racks) not in (0, self.num_nodes):
            raise ValueError(
                f"{owner}: racks must be {self.num_nodes}, one a node, got {len(self.nodes.racks)}"
            )

    @property
    def site_name(self) -> str:
        """Name of the site; that of the domain where it is a site of its own."""
        return self.name if self.site is None else self.site

    @property
    def num_nodes(self) -> int:
        """Servers of the domain; without ``nodes`` it counts as one."""
        return 1 if self.nodes is None else self.num_gpus // self.nodes.gpus_per_node

    @property
    def node_order(self) -> Sequence[int]:
        """Numbers of the servers in the order in which plans take them, see `rack_order`."""
        if self.nodes is None or not self.has_priced_racks:
            return range(self.num_nodes)
        return rack_order(self.nodes)

    @property
    def has_priced_racks(self) -> bool:
        """Whether ways between racks of servers have figures of their own."""
        return self.nodes is not None and self.nodes.has_priced_racks

    def resized(self, num_nodes: int) -> "Domain":
        """The domain with another number of servers, see `Nodes.resized`."""
        nodes = None if self.nodes is None else self.nodes.resized(num_nodes)
        num_gpus = self.num_gpus // self.num_nodes * num_nodes
        return replace(self, num_gpus=num_gpus, nodes=nodes)

    @property
    def peak_flops_per_s(self) -> float:
        """Peak of all GPUs of the domain together. [FLOP/s]"""
        return self.num_gpus * self.gpu_peak_flops_per_s

    @property
    def attainable_flops_per_s(self) -> float:
        """Throughput of transformer layers on all GPUs of the domain together. [FLOP/s]"""
        return self.peak_flops_per_s * self.attainable_fraction

    @property
    def source_of_layer_times(self) -> Literal["fraction", "shapes", "profile"]:
        """Source of the times of layers, as the key ``layer_times`` of a file has it."""
        if self.profile is not None:
            return "profile"
        return "fraction" if self.kernels is None else "shapes"

    @property
    def layer_times(self) -> str:
        """Source of the times of layers in words: a profile, shapes, or a part of the peak."""
        if self.profile is not None:
            outside = ", outside it scaled by shapes" if self.profile.extrapolates else ""
            return f"profile {self.profile.name} of {self.profile.gpu}{outside}"
        if self.kernels is None:
            return f"FLOPs at {self.attainable_fraction:g} of the peak"
        return f"shapes of matrices{'' if self.gpu_kind is None else f' on {self.gpu_kind}'}"

    @property
    def memory_bytes(self) -> float:
        """Memory of all GPUs of the domain together. [bytes]"""
        return self.num_gpus * self.gpu_memory_bytes


def layer_times_text(domains: Iterable[Domain]) -> str:
    """Sources of layer times, with the domains of each where there are several."""
    names_of: dict[str, list[str]] = {}
    for domain in domains:
        names_of.setdefault(domain.layer_times, []).append(domain.name)
    if len(names_of) == 1:
        return next(iter(names_of))
    return "; ".join(f"{', '.join(names)}: {source}" for source, names in names_of.items())


def _require_name(name: object) -> None:
    """Refuse a name that is none, or by which a plan as text could not be read again."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"domain: name must be a non-empty text, got {name!r}")
    if name != name.strip() or not name.isprintable() or set(name) & set(_IN_PLANS):
        raise ValueError(
            f"domain: name must be printable, without spaces around it and without "
            f"{' '.join(_IN_PLANS)}, which separate the domains of a plan; got {name!r}"
        )
