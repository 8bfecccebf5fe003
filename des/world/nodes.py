"""Nodes of a domain: servers of equal GPUs, and the network cards that join them."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

from des.base.checks import require_count, require_non_negative, require_positive
from des.base.node_arithmetic import cards_bytes_per_s, way_over_links
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
    the domain; ``racks`` are those of the nodes, one name each, or none if they are not known. A
    rack has ``rack_uplink_bytes_per_s`` to the others in each direction, and a way between two
    takes ``rack_latency_s`` longer; with None racks change no time. Plans take the nodes of such
    racks in the order of `rack_order`.
    """

    gpus_per_node: int
    nics_per_node: int
    nic_bandwidth_bytes_per_s: float
    nic_latency_s: float
    tensor_across_nodes: bool = False
    server: Server | None = None
    racks: tuple[str, ...] = ()
    rack_uplink_bytes_per_s: float | None = None
    rack_latency_s: float = 0.0

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
        require_non_negative("nodes", "rack_latency_s", self.rack_latency_s)
        if self.rack_uplink_bytes_per_s is not None:
            require_positive("nodes", "rack_uplink_bytes_per_s", self.rack_uplink_bytes_per_s)
            if not self.racks:
                raise ValueError("nodes: racks must be given with rack_uplink_bytes_per_s")
        elif self.rack_latency_s:
            raise ValueError("nodes: rack_uplink_bytes_per_s must be given with rack_latency_s")

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

    def way_out(self, num_senders: int, num_groups: int, rack_flows: float) -> tuple[float, float]:
        """Bandwidth [bytes/s] and latency [s] of `outer_bandwidth_bytes_per_s` to other nodes.

        Parameters
        ----------
        rack_flows
            Flows that share the uplink of a rack in one direction; 0 if the way leaves none.
        """
        way = [(self.outer_bandwidth_bytes_per_s(num_senders, num_groups), self.nic_latency_s, 1.0)]
        if self.rack_uplink_bytes_per_s is not None and rack_flows:
            way.append((self.rack_uplink_bytes_per_s, self.rack_latency_s, rack_flows))
        return way_over_links(way)

    def resized(self, num_nodes: int) -> "Nodes":
        """Only the first nodes, or more of them, which stand in the last rack."""
        more = self.racks[-1:] * (num_nodes - len(self.racks))
        return replace(self, racks=(*self.racks[:num_nodes], *more))

    @property
    def has_priced_racks(self) -> bool:
        """Whether ways between racks have figures of their own."""
        return self.rack_uplink_bytes_per_s is not None

    def allows_tensor(self, tensor: int, num_gpus: int) -> bool:
        """Whether tensor groups of ``num_gpus`` GPUs in use keep to nodes, or may span whole ones.

        GPUs that all lie in one node may form groups of any size. Otherwise groups fill a node
        without remainder, or with ``tensor_across_nodes`` several nodes.
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


@lru_cache(maxsize=1024)
def rack_order(nodes: Nodes) -> tuple[int, ...]:
    """Numbers of the nodes as plans take them: rack by rack, those with most nodes first.

    Examples
    --------
    >>> nodes = Nodes(
    ...     gpus_per_node=8, nics_per_node=8, nic_bandwidth_bytes_per_s=50e9, nic_latency_s=5e-6,
    ...     racks=("a", "b", "b"), rack_uplink_bytes_per_s=100e9,
    ... )
    >>> rack_order(nodes)
    (1, 2, 0)
    """
    sizes = Counter(nodes.racks)
    place = {rack: at for at, rack in enumerate(sizes)}
    return tuple(
        sorted(
            range(len(nodes.racks)),
            key=lambda node: (-sizes[nodes.racks[node]], place[nodes.racks[node]]),
        )
    )
