"""Common parts of both topology file forms: units, transport and GPU keys."""

from pathlib import Path
from typing import Literal

from des.base.checks import prefixed_errors
from des.base.strict_forms import StrictForm
from des.devices.gpu_kinds import GpuKind, gpu_kind_named
from des.world.domain import Domain
from des.world.files.access_form import AccessForm
from des.world.files.nodes_form import NodesForm
from des.world.files.profile_files import read_layer_profile
from des.world.files.quantity_fields import Bandwidth, Latency, Price, Size, Speed
from des.world.files.runtime_form import RuntimeForm, runtime_form
from des.world.kernel_figures import FITTED_KERNELS, GraphScope, KernelFigures
from des.world.layer_profiles import LayerProfile
from des.world.nodes import Nodes
from des.world.packet_transport import (
    MOST_SEGMENT_BYTES,
    Acknowledgements,
    Congestion,
    Connections,
    PacketTransport,
)
from des.world.transport import Transport


class PacketsForm(StrictForm):
    """The section ``packets`` of the transport, for networks that simulate packets."""

    congestion: Congestion = "line_rate_window"
    connections: Connections = "reused"
    flows: int = 1
    segment_bytes: int = MOST_SEGMENT_BYTES
    first_segments: int | None = None
    buffer: Size | None = None
    queue: Size | None = None
    queue_products: float | None = None
    loss_fraction: float = 0.0
    acknowledgements: Acknowledgements | None = None

    def to_packets(self) -> PacketTransport:
        """Make the value."""
        return PacketTransport(
            congestion=self.congestion,
            connections=self.connections,
            flows=self.flows,
            segment_bytes=self.segment_bytes,
            first_segments=self.first_segments,
            buffer_bytes=self.buffer,
            queue_bytes=self.queue,
            queue_products=self.queue_products,
            loss_fraction=self.loss_fraction,
            acknowledgements=self.acknowledgements,
        )


class TransportForm(StrictForm):
    """The section ``transport``; left out, links are first come, first served."""

    sharing: Literal["fifo", "fair", "none"] = "fifo"
    endpoints: Literal["overlapped", "one_in_flight", "blocking"] = "overlapped"
    half_duplex: bool = False
    num_endpoint_pairs: int = 1
    flows_per_pair: int = 1
    window: Size | None = None
    packets: PacketsForm = PacketsForm()
    runtime: RuntimeForm | str = "ideal"

    def to_transport(self) -> Transport:
        """Make the value."""
        runtime = runtime_form(self.runtime)
        return Transport(
            sharing=self.sharing,
            endpoints=self.endpoints,
            half_duplex=self.half_duplex,
            num_endpoint_pairs=self.num_endpoint_pairs,
            flows_per_pair=self.flows_per_pair,
            window_bytes=self.window,
            packets=self.packets.to_packets(),
            runtime=runtime.to_runtime(),
            hosts=runtime.to_hosts(),
        )


class KernelsForm(StrictForm):
    """The section ``kernels`` of a domain, with ``layer_times: shapes`` or ``profile``."""

    matmul_efficiency: float = FITTED_KERNELS.matmul_efficiency
    memory_efficiency: float = FITTED_KERNELS.memory_efficiency
    layer_launch: Latency = FITTED_KERNELS.layer_launch_s
    iteration_overhead: Latency = FITTED_KERNELS.iteration_overhead_s
    attention_share: float = FITTED_KERNELS.attention_share
    graphs: GraphScope = FITTED_KERNELS.graphs
    hides_all_to_alls: bool = FITTED_KERNELS.hides_all_to_alls

    def to_figures(self) -> KernelFigures:
        """Make the value."""
        return KernelFigures(
            matmul_efficiency=self.matmul_efficiency,
            memory_efficiency=self.memory_efficiency,
            layer_launch_s=self.layer_launch,
            iteration_overhead_s=self.iteration_overhead,
            attention_share=self.attention_share,
            graphs=self.graphs,
            hides_all_to_alls=self.hides_all_to_alls,
        )


class GpuForm(AccessForm):
    """GPU keys and limits, shared by both forms; the defaults are those of East-Central-West.

    ``gpu`` names a model whose figures take the place of the defaults. ``layer_times`` that go
    unsaid are those of a ``profile``, a file of measured times of which those of ``profile_gpu``
    (default: ``gpu``) are taken; else of shapes if ``gpu`` names a known kind and no
    ``attainable_fraction`` is given; else FLOPs over a fraction of the peak. With ``shapes`` or
    ``profile`` the whole time of the GPUs is the job's (``attainable_fraction`` 1).
    """

    num_gpus: int = 8
    gpu: str = "east_west_120"
    gpu_peak: Speed | None = None
    gpu_memory: Size | None = None
    gpu_memory_bandwidth: Bandwidth | None = None
    layer_times: Literal["fraction", "shapes", "profile"] | None = None
    kernels: KernelsForm | None = None
    profile: str | None = None
    profile_gpu: str | None = None
    extrapolate: bool = False
    attainable_fraction: float | None = None
    gpu_price_usd_per_hour: Price | None = None
    nodes: NodesForm | None = None

    def to_domain(
        self, name: str, bandwidth_bytes_per_s: float, latency_s: float, folder: Path
    ) -> Domain:
        """Make a domain with these GPUs and that inner network; a profile lies in the folder.

        Raises
        ------
        ValueError
            If there is no such GPU model, or a figure is impossible.
        """
        model = gpu_kind_named(name, self.gpu)
        source = self._source_on(model)
        kernels = self._kernels_of(name, source)
        fraction = self.attainable_fraction
        if fraction is None:
            fraction = 0.5 if kernels is None else 1.0
        return Domain(
            name=name,
            num_gpus=self.num_gpus,
            gpu_peak_flops_per_s=self.gpu_peak or model.peak_flops_per_s,
            gpu_memory_bytes=self.gpu_memory or model.memory_bytes,
            gpu_memory_bandwidth_bytes_per_s=(
                self.gpu_memory_bandwidth or model.memory_bandwidth_bytes_per_s
            ),
            attainable_fraction=fraction,
            intra_bandwidth_bytes_per_s=bandwidth_bytes_per_s,
            intra_latency_s=latency_s,
            gpu_price_usd_per_hour=self.gpu_price_usd_per_hour,
            kernels=kernels,
            nodes=None if self.nodes is None else self._nodes_of(name, folder),
            profile=self._profile_of(name, source, folder),
            site=self.site,
            access=self.to_access(),
            gpu_kind=model.name if model.is_product else None,
        )

    def _source_on(self, model: GpuKind) -> str:
        """Source of layer times on GPUs of a kind: the best that the keys allow."""
        if self.layer_times is not None:
            return self.layer_times
        if self.profile is not None:
            return "profile"
        return "shapes" if model.is_product and self.attainable_fraction is None else "fraction"

    def _profile_of(self, name: str, source: str, folder: Path) -> LayerProfile | None:
        if source != "profile":
            for key in ("profile", "profile_gpu", "extrapolate"):
                if getattr(self, key):
                    raise ValueError(
                        f"domain {name}: {key} must be left out with layer_times {source}, got it"
                    )
            return None
        if self.profile is None:
            raise ValueError(f"domain {name}: profile must name a file with layer_times profile")
        with prefixed_errors(f"domain {name}: profile: "):
            return read_layer_profile(
                folder / self.profile,
                gpu=self.profile_gpu or self.gpu,
                extrapolates=self.extrapolate,
            )

    def _kernels_of(self, name: str, source: str) -> KernelFigures | None:
        if source == "fraction":
            if self.kernels is not None:
                raise ValueError(
                    f"domain {name}: kernels must be left out with layer_times fraction, got it"
                )
            return None
        with prefixed_errors(f"domain {name}: "):
            return (self.kernels or KernelsForm()).to_figures()

    def _nodes_of(self, name: str, folder: Path) -> Nodes:
        assert self.nodes is not None
        with prefixed_errors(f"domain {name}: "):
            return self.nodes.to_nodes(self.num_gpus, folder)
