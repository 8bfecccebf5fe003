"""Writing topologies as YAML files that read back as equal values, to the last bit."""

from dataclasses import fields
from pathlib import Path

import yaml

from des.base.atomic_write import write_atomically
from des.base.quantities import (
    BANDWIDTH_BYTES_PER_S,
    FLOPS_PER_S,
    SIZE_BYTES,
    TIME_S,
    format_quantity,
)
from des.devices.presets import KIND_NAMES
from des.world.domain import Domain
from des.world.files.availability_form import availability_entry
from des.world.files.dynamics_forms import law_entry
from des.world.files.runtime_form import runtime_entry
from des.world.files.topology_yaml import from_yaml, topology_of
from des.world.kernel_figures import KernelFigures
from des.world.nodes import Nodes
from des.world.packet_transport import PacketTransport
from des.world.topology import Link, Topology
from des.world.transport import PLAIN, Transport


def write_topology(
    path: str | Path,
    topology: Topology,
    *,
    comment: str = "",
    makes_folder: bool = False,
    trace: str | None = None,
) -> None:
    """Write a world to a ``.yaml`` or ``.yml`` file, whole or not at all.

    ``makes_folder``: with the folder that the file lies in, if there is none. ``trace``: see
    `to_yaml`.

    Raises
    ------
    ValueError
        If the file has another ending, or the world holds what a file does not (see `to_yaml`).
    OSError
        If the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise ValueError(f"{path}: a topology must be written to a file ending in .yaml or .yml")
    content = to_yaml(topology, comment=comment, trace=trace, folder=path.parent).encode()
    if makes_folder and not path.parent.exists():
        path.parent.mkdir(parents=True)
    write_atomically(path, content)


def to_yaml(
    topology: Topology,
    *,
    comment: str = "",
    trace: str | None = None,
    folder: Path | None = None,
) -> str:
    """Write a world in the YAML form, after the lines of a comment.

    ``trace`` is a table beside the file that links replay, in place of the law of the world.
    Profiles of layers are named where their files lie in the folder.

    Raises
    ------
    ValueError
        If the world holds what a file does not, such as a movement under way.
    """
    content = _entry_of(topology, folder)
    body = _dumped(content)
    _require_equal(from_yaml(body, folder or Path()), topology)
    if trace is not None:
        law = {"kind": "replay", "file": trace, "holds_last": True}
        body = _dumped(content | {"dynamics": law})
    return "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines()) + body


def _dumped(content: dict[str, object]) -> str:
    """YAML with a link on one line, as people write them; the width is where lines break then."""
    text: str = yaml.safe_dump(
        content, sort_keys=False, default_flow_style=None, allow_unicode=True, width=85
    )
    return text


def topology_entry(topology: Topology) -> dict[str, object]:
    """Return a world as plain values, of which `topology_of` makes an equal one.

    Raises
    ------
    ValueError
        If the world holds what a file does not, such as a movement under way.
    """
    content = _entry_of(topology)
    _require_equal(topology_of(content), topology)
    return content


def _entry_of(topology: Topology, folder: Path | None = None) -> dict[str, object]:
    content: dict[str, object] = {
        "topology": {
            "domains": [_domain_entry(domain, folder) for domain in topology.domains],
            "cross_domain_links": _link_entries(topology),
        },
        "dynamics": law_entry(topology.dynamics),
    }
    if topology.transport != PLAIN:
        content["transport"] = _transport_entry(topology.transport)
    if topology.availability is not None:
        content["availability"] = availability_entry(topology.availability)
    return content


def _require_equal(read_back: Topology, topology: Topology) -> None:
    """Refuse a world that is another one when it is read again, naming the field."""
    for field in fields(topology):
        value = getattr(topology, field.name)
        if getattr(read_back, field.name) != value:
            raise ValueError(f"topology: {field.name} cannot be written to a file, got {value!r}")


def _domain_entry(domain: Domain, folder: Path | None) -> dict[str, object]:
    entry: dict[str, object] = {
        "name": domain.name,
        "num_gpus": int(domain.num_gpus),
        **({} if domain.gpu_kind is None else {"gpu": domain.gpu_kind}),
        "gpu_peak": format_quantity(domain.gpu_peak_flops_per_s, "TFLOP/s", FLOPS_PER_S),
        "gpu_memory": format_quantity(domain.gpu_memory_bytes, "GB", SIZE_BYTES),
        "gpu_memory_bandwidth": format_quantity(
            domain.gpu_memory_bandwidth_bytes_per_s, "GB/s", BANDWIDTH_BYTES_PER_S
        ),
        "attainable_fraction": float(domain.attainable_fraction),
        "intra_bandwidth": _gbps(domain.intra_bandwidth_bytes_per_s),
        "intra_latency": format_quantity(domain.intra_latency_s, "us", TIME_S),
    }
    entry |= _price_entry("gpu_price_usd_per_hour", domain.gpu_price_usd_per_hour)
    entry |= _access_entry(domain)
    profile = domain.profile
    if profile is not None and (folder is None or not (folder / profile.name).is_file()):
        raise ValueError(
            f"domain {domain.name}: profile must be left out of a world that is written to a file, "
            f"or be a file beside it, got {profile.name}"
        )
    if profile is not None and domain.kernels is not None:
        entry |= {"layer_times": "profile", "kernels": _kernels_entry(domain.kernels)}
        entry |= {"profile": profile.name, "profile_gpu": profile.gpu}
        entry |= {"extrapolate": profile.extrapolates}
    elif domain.kernels is not None:
        entry |= {"layer_times": "shapes", "kernels": _kernels_entry(domain.kernels)}
    elif domain.gpu_kind is not None:
        entry["layer_times"] = "fraction"
    return entry if domain.nodes is None else entry | {"nodes": _nodes_entry(domain.nodes)}


def _access_entry(domain: Domain) -> dict[str, object]:
    """Site and limits; an equal downlink goes without saying."""
    access = domain.access
    uplink, downlink = access.uplink_bytes_per_s, access.downlink_bytes_per_s
    rates = {
        "uplink": uplink,
        "downlink": None if uplink == downlink else downlink,
        "flow_cap": access.flow_cap_bytes_per_s,
        "host_cap": access.host_cap_bytes_per_s,
    }
    entry: dict[str, object] = {} if domain.site is None else {"site": domain.site}
    entry |= {key: _gbps(rate) for key, rate in rates.items() if rate is not None}
    return entry | ({"downlink": None} if uplink is not None and downlink is None else {})


def _kernels_entry(kernels: KernelFigures) -> dict[str, object]:
    usual = {"attention_share": 1.0, "graphs": "none", "hides_all_to_alls": False}
    others = {field: getattr(kernels, field) for field in usual}
    return {
        "matmul_efficiency": float(kernels.matmul_efficiency),
        "memory_efficiency": float(kernels.memory_efficiency),
        "layer_launch": format_quantity(kernels.layer_launch_s, "us", TIME_S),
        "iteration_overhead": format_quantity(kernels.iteration_overhead_s, "us", TIME_S),
        **{field: value for field, value in others.items() if value != usual[field]},
    }


def _nodes_entry(nodes: Nodes) -> dict[str, object]:
    entry: dict[str, object] = {
        "gpus_per_node": int(nodes.gpus_per_node),
        "nics_per_node": int(nodes.nics_per_node),
        "nic_bandwidth": _gbps(nodes.nic_bandwidth_bytes_per_s),
        "nic_latency": format_quantity(nodes.nic_latency_s, "us", TIME_S),
    }
    if nodes.tensor_across_nodes:
        entry["tensor_across_nodes"] = True
    if nodes.server is not None:
        if nodes.server.name not in KIND_NAMES:
            raise ValueError(
                "nodes: server must be left out of a world that is written to a file, or be one "
                f"of {', '.join(KIND_NAMES)}; got {nodes.server.name}"
            )
        entry["server"] = nodes.server.name
    entry |= {"rack": list(nodes.racks)} if nodes.racks else {}
    if nodes.rack_uplink_bytes_per_s is not None:
        entry["rack_uplink"] = _gbps(nodes.rack_uplink_bytes_per_s)
        entry["rack_latency"] = format_quantity(nodes.rack_latency_s, "us", TIME_S)
    return entry


def _link_entries(topology: Topology) -> list[dict[str, object]]:
    """One entry for two directions of equal figures, else one for each."""
    entries = []
    by_ends = {(link.source, link.target): _link_entry(link) for link in topology.links}
    for (source, target), entry in by_ends.items():
        ends = {"source": source, "dest": target}
        if by_ends.get((target, source)) != entry:
            entries.append(ends | entry | {"one_way": True})
        elif topology.index_of[source] < topology.index_of[target]:
            entries.append(ends | entry)
    return entries


def _link_entry(link: Link) -> dict[str, object]:
    entry: dict[str, object] = {
        "bandwidth": _gbps(link.bandwidth_bytes_per_s),
        "latency": format_quantity(link.latency_s, "ms", TIME_S),
    }
    if link.flow_cap_bytes_per_s is not None:
        entry["flow_cap"] = _gbps(link.flow_cap_bytes_per_s)
    return entry | _price_entry("price_usd_per_gb", link.price_usd_per_gb)


def _transport_entry(transport: Transport) -> dict[str, object]:
    entry: dict[str, object] = {
        "sharing": transport.sharing,
        "endpoints": transport.endpoints,
        "half_duplex": transport.half_duplex,
        "num_endpoint_pairs": int(transport.num_endpoint_pairs),
        "flows_per_pair": int(transport.flows_per_pair),
    }
    if transport.window_bytes is not None:
        entry["window"] = format_quantity(transport.window_bytes, "B", SIZE_BYTES)
    if transport.packets != PLAIN.packets:
        entry["packets"] = _packets_entry(transport.packets)
    if transport.runtime != PLAIN.runtime or transport.hosts is not None:
        entry["runtime"] = runtime_entry(transport)
    return entry


def _packets_entry(packets: PacketTransport) -> dict[str, object]:
    entry: dict[str, object] = {
        "congestion": packets.congestion,
        "connections": packets.connections,
        "flows": int(packets.flows),
        "segment_bytes": int(packets.segment_bytes),
        "loss_fraction": float(packets.loss_fraction),
    }
    if packets.first_segments is not None:
        entry["first_segments"] = int(packets.first_segments)
    if packets.queue_products is not None:
        entry["queue_products"] = float(packets.queue_products)
    if packets.acknowledgements is not None:
        entry["acknowledgements"] = packets.acknowledgements
    for key, num_bytes in (("buffer", packets.buffer_bytes), ("queue", packets.queue_bytes)):
        if num_bytes is not None:
            entry[key] = format_quantity(num_bytes, "B", SIZE_BYTES)
    return entry


def _gbps(bytes_per_s: float) -> str:
    return format_quantity(bytes_per_s, "Gbps", BANDWIDTH_BYTES_PER_S)


def _price_entry(key: str, price: float | None) -> dict[str, object]:
    return {} if price is None else {key: float(price)}
