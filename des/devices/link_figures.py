"""Times of transfers between GPUs: constants per GPU model and network, fitted to measurements.

A collective takes ``max(floor_s, launch_s + steps + bytes)``: each step has the latency of its kind
of hop, and bytes pass at a fraction of the line rate of `des.devices.gpu_ports`. The launch is what
makes the bandwidth of a bus grow with the message: half of the full one at ``launch_s`` times it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from des.base.checks import (
    prefixed_errors,
    require_fraction,
    require_non_negative,
    require_positive,
)
from des.devices.closeness import num_nvlinks
from des.devices.gpu_kinds import gpu_ports_named
from des.devices.gpu_ports import GpuPorts, LinkClass
from des.devices.server import Gpu, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferConstants:
    """Constants of transfers between GPUs of one model.

    Attributes
    ----------
    launch_s
        Time of a collective without steps and bytes, which comes before them. [s]
    floor_s
        Least time of a collective, which the host needs to start it while the last one runs. [s]
    nvlink_step_s, pcie_step_s
        Latency of one step between two GPUs. [s]
    nvlink_fraction, pcie_fraction
        Parts of the line rates that large messages reach.
    """

    launch_s: float
    floor_s: float
    nvlink_step_s: float
    nvlink_fraction: float
    pcie_step_s: float
    pcie_fraction: float

    def __post_init__(self) -> None:
        owner = "transfer constants"
        for name in ("launch_s", "floor_s", "nvlink_step_s", "pcie_step_s"):
            require_non_negative(owner, name, getattr(self, name))
        for name in ("nvlink_fraction", "pcie_fraction"):
            require_fraction(owner, name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConstants:
    """Constants of transfers between servers.

    Attributes
    ----------
    gpu_bandwidth_bytes_per_s
        Way out of a server that each GPU in the collective adds. [bytes/s]
    server_bandwidth_bytes_per_s
        Most that all GPUs of a server get out together. [bytes/s]
    step_s
        Latency of one step between GPUs of two servers. [s]
    """

    gpu_bandwidth_bytes_per_s: float
    server_bandwidth_bytes_per_s: float
    step_s: float

    def __post_init__(self) -> None:
        owner = "network constants"
        for name in ("gpu_bandwidth_bytes_per_s", "server_bandwidth_bytes_per_s"):
            require_positive(owner, name, getattr(self, name))
        require_non_negative(owner, "step_s", self.step_s)

    def way_out_bytes_per_s(self, num_gpus: int) -> float:
        """Bandwidth out of a server with that many GPUs in the collective.

        Examples
        --------
        >>> network = NetworkConstants(
        ...     gpu_bandwidth_bytes_per_s=6e9, server_bandwidth_bytes_per_s=20e9, step_s=1e-5
        ... )
        >>> network.way_out_bytes_per_s(2) / 1e9, network.way_out_bytes_per_s(8) / 1e9
        (12.0, 20.0)
        """
        return min(num_gpus * self.gpu_bandwidth_bytes_per_s, self.server_bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLinks:
    """Ports of a GPU model with its constants, and where these are from."""

    ports: GpuPorts
    constants: TransferConstants
    origin: str

    def link(self, token: str) -> LinkClass:
        """Link over a path of ``nvidia-smi topo -m`` to another GPU of the model.

        Raises
        ------
        ValueError
            If no GPUs of the model are joined so.
        """
        of, rate = self.constants, self.ports.line_rate_bytes_per_s(token)
        if num_nvlinks(token):
            return LinkClass(
                bandwidth_bytes_per_s=rate * of.nvlink_fraction, latency_s=of.nvlink_step_s
            )
        return LinkClass(bandwidth_bytes_per_s=rate * of.pcie_fraction, latency_s=of.pcie_step_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFigures:
    """Constants of GPU models and networks, and the measurements that they were fitted to.

    Attributes
    ----------
    pooled
        Constants of models without cells of their own: those that all fitted models share.
    models, networks
        Constants by name of the GPU model, and of the machines that a network joined.
    algorithm, least_bytes
        All-reduce as which the cells were fitted, and the smallest buffer among them. [bytes]
    source
        Measurements, with their licence.
    """

    pooled: TransferConstants
    models: Mapping[str, TransferConstants] = field(default_factory=lambda: MappingProxyType({}))
    networks: Mapping[str, NetworkConstants] = field(default_factory=lambda: MappingProxyType({}))
    algorithm: str
    least_bytes: float
    source: str

    def of_model(self, name: str | None) -> ModelLinks:
        """Links of a GPU model.

        Raises
        ------
        ValueError
            If the model is not known; the message lists those that are.
        """
        ports = gpu_ports_named(name)
        own = self.models.get(ports.name)
        if own is not None:
            return ModelLinks(ports=ports, constants=own, origin=f"fitted to {ports.name} cells")
        pooled_over = ", ".join(self.models) or "none"
        return ModelLinks(
            ports=ports,
            constants=self.pooled,
            origin=f"no cells of {ports.name}: line rates of its data sheet, constants that the "
            f"fitted models share ({pooled_over})",
        )

    def of_gpu(self, gpu: Gpu) -> ModelLinks:
        """Links of a GPU, at the rate of its own NVLinks where the server knows it."""
        links, rate = self.of_model(gpu.model), gpu.nvlink_bytes_per_s
        if rate is None or rate == links.ports.nvlink_bytes_per_s:
            return links
        return replace(links, ports=replace(links.ports, nvlink_bytes_per_s=rate))

    def links_of(self, server: Server) -> tuple[tuple[LinkClass, ...], ...]:
        """Links of every two GPUs of a server, the slower of two models; no diagonal.

        Raises
        ------
        ValueError
            If a GPU's model is not known, or has no such link; naming the server and the GPU.
        """
        models = []
        for gpu in server.gpus:
            with prefixed_errors(f"server {server.name}, {gpu.name}: "):
                models.append(self.of_gpu(gpu))
        count = server.num_gpus
        own = LinkClass(bandwidth_bytes_per_s=1.0, latency_s=0.0)
        rows = [[own] * count for _ in range(count)]
        with prefixed_errors(f"server {server.name}: "):
            for one in range(count):
                for other in range(one):
                    token = server.gpu_tokens[one][other]
                    ends = [models[end].link(token) for end in (one, other)]
                    slower = LinkClass(
                        bandwidth_bytes_per_s=min(end.bandwidth_bytes_per_s for end in ends),
                        latency_s=max(end.latency_s for end in ends),
                    )
                    rows[one][other] = rows[other][one] = slower
        return tuple(tuple(row) for row in rows)

    def of_network(self, name: str) -> NetworkConstants:
        """Look up a fitted network.

        Raises
        ------
        ValueError
            If there is none of that name; the message lists those there are.
        """
        known = self.networks.get(name)
        if known is None:
            names = ", ".join(self.networks) or "none"
            raise ValueError(f"network: must be one of {names}; got {name!r}")
        return known
