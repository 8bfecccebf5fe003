"""Nodes of a domain: servers of equal GPUs, and the network cards that join them."""

from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative, require_positive
from des.base.node_arithmetic import cards_bytes_per_s
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Equal servers of one domain.

    GPUs are numbered node by node. Those of one node reach each other at the inner figures of the
    domain (``intra_bandwidth_bytes_per_s``, ``intra_latency_s``: NVLink), those of different nodes
    over the network cards of their nodes. Every card has ``nic_bandwidth_bytes_per_s`` in each
    direction, and ``nic_latency_s`` is that of the whole way from GPU to GPU.
    ``tensor_across_nodes`` allows tensor parallelism over several whole nodes. The ``server`` that
    each node is, if it is known, has GPUs, cards and NUMA nodes one by one, for decisions inside
    the domain; ``racks`` are those of the nodes, one name each, or none if they are not known.
    """

    gpus_per_node: int
    nics_per_node: int
    nic_bandwidth_bytes_per_s: float
    nic_latency_s: float
    tensor_across_nodes: bool = False
    server: Server | None = None
    racks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("gpus_per_node", "nics_per_node"):
            require_count("nodes", field, getattr(self, field))
        require_positive("nodes", "nic_bandwidth_bytes_per_s", self.nic_bandwidth_bytes_per_s)
        require_non_negative("nodes", "nic_latency_s", self.nic_latency_s)
        if not isinstance(self.tensor_across_nodes, bool):
            raise ValueError(
                "nodes: tensor_across_nodes must be True or False, "
                f"got {self.tensor_across_nodes!r}"
            )
        if self.server is not None and self.server.num_gpus != self.gpus_per_node:
            raise ValueError(
                f"nodes: gpus_per_node must be the {self.server.num_gpus} GPUs of server "
                f"{self.server.name}, got {self.gpus_per_node}"
            )
        if not all(isinstance(rack, str) and rack.strip() for rack in self.racks):
            raise ValueError(f"nodes: racks must be names, got {self.racks!r}")

    def outer_bandwidth_bytes_per_s(self, num_senders: int, num_groups: int = 1) -> float:
        """Bandwidth out of a node for GPUs of one group, which together may use all its cards.

        Parameters
        ----------
        num_senders
            GPUs of the group in the node; each has at most one card at a time.
        num_groups
            Groups of the node that send at once and share its cards evenly.

        Examples
        --------
        >>> nodes = Nodes(
        ...     gpus_per_node=8, nics_per_node=4, nic_bandwidth_bytes_per_s=25e9, nic_latency_s=5e-6
        ... )
        >>> nodes.outer_bandwidth_bytes_per_s(1), nodes.outer_bandwidth_bytes_per_s(8)
        (25000000000.0, 100000000000.0)
        >>> nodes.outer_bandwidth_bytes_per_s(1, num_groups=8)
        12500000000.0
        """
        return cards_bytes_per_s(
            self.nics_per_node, self.nic_bandwidth_bytes_per_s, num_senders, num_groups
        )

    def allows_tensor(self, tensor: int, num_gpus: int) -> bool:
        """Whether tensor groups of ``num_gpus`` GPUs in use keep to nodes, or may span whole ones.

        GPUs that all lie in one node may form groups of any size. Otherwise groups fill a node
        without a rest, or with ``tensor_across_nodes`` several nodes.
        """
        if num_gpus <= self.gpus_per_node or self.gpus_per_node % tensor == 0:
            return True
        return self.tensor_across_nodes and tensor % self.gpus_per_node == 0

    def check_tensor(self, owner: str, tensor: int, num_gpus: int) -> None:
        """Refuse what `allows_tensor` does not."""
        if self.allows_tensor(tensor, num_gpus):
            return
        allowed = f"divide the {self.gpus_per_node} GPUs of a node"
        if self.tensor_across_nodes:
            allowed += " or be a multiple of them"
        else:
            allowed += ", as nodes.tensor_across_nodes is False"
        raise ValueError(f"{owner}: tensor must {allowed}; got {tensor}")
