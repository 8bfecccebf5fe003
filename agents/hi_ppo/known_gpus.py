"""GPUs of domains as the local level knows them."""

from agents.hi_ppo.local.case import MOST_LOCAL_GPUS
from des import Domain, Topology
from des.devices.figures_file import shipped_link_figures
from des.devices.gpu_kinds import GPU_PORTS
from des.devices.gpu_ports import LinkClass
from des.devices.gpus import MOST_GPUS, GpuTopology


def gpus_of_domains(topology: Topology) -> tuple[GpuTopology | None, ...]:
    """Return the GPUs of each domain, or of one of its equal servers; None where not known.

    Servers are those of the key ``nodes``; their links have the fitted figures of the GPUs' models,
    or where a model is not known those of the tokens, which policies were trained on. The GPUs of a
    domain that is one node at most are known without a server, too: all are joined by its inner
    network. Nodes of a domain without a server are not known.
    """
    return tuple(_gpus_of(domain) for domain in topology.domains)


def _gpus_of(domain: Domain) -> GpuTopology | None:
    nodes = domain.nodes
    if nodes is not None and nodes.server is not None:
        if nodes.gpus_per_node > MOST_GPUS:
            return None
        are_known = all(gpu.model in GPU_PORTS for gpu in nodes.server.gpus)
        figures = shipped_link_figures() if are_known else None
        return GpuTopology.of_server(nodes.server, figures=figures)
    if domain.num_gpus > MOST_LOCAL_GPUS or domain.num_nodes > 1:
        return None
    joined = LinkClass(
        bandwidth_bytes_per_s=domain.intra_bandwidth_bytes_per_s, latency_s=domain.intra_latency_s
    )
    return GpuTopology.alike(domain.num_gpus, joined)
