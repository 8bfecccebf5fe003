"""Times of collective operations over GPUs of several nodes: two levels of wires.

The alpha-beta model of `des.costs.collectives` with two kinds of hops: ``n`` ranks lie on ``k``
nodes, and hops inside a node are quicker than those between nodes. Rings and trees pass through
each node once. They are cut into as many channels as a node has cards for the group, so the way
out of a node has the bandwidth of all these cards, and parts of the payload follow each other
closely: the slowest kind of hop sets the pace, and every hop on the way adds its latency once.
On one node, or with one rank per node, the formulas are those of one level, to the last bit.

References
----------
.. [1] S. Jeaugey, "Massively scale your deep learning training with NCCL 2.4", NVIDIA technical
   blog, 2019 (rings and double binary trees over nodes).
.. [2] P. Sanders, J. Speck and J. L. Träff, "Two-tree algorithms for full bandwidth broadcast,
   reduction and scan", Parallel Computing 35(12), 2009.
.. [3] NVIDIA, NCCL, ``src/graph/tuning.cc`` (revision 01afd20a): how it times rings and trees; its
   discounts for trees of medium size, and for long rings, are left out.
.. [4] NVIDIA, NCCL user guide, "Point-to-point communication": grouped sends and receives progress
   concurrently, for example as an all-to-all.
"""

from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative, require_positive
from des.base.node_arithmetic import ring_over_nodes_s, tree_over_nodes_s
from des.costs.collectives import all_gather_s, reduce_scatter_s, ring_all_reduce_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Ranks of a collective, the nodes they lie on, and their wires.

    ``most_per_node`` is the number of ranks on the fullest node. The outer bandwidth is that of all
    ranks of a node together, where it is least; the figures of a level without hops are not used.
    """

    num_ranks: int
    num_nodes: int = 1
    most_per_node: int
    inner_bandwidth_bytes_per_s: float
    inner_latency_s: float
    outer_bandwidth_bytes_per_s: float = 1.0
    outer_latency_s: float = 0.0

    def __post_init__(self) -> None:
        for field in ("num_ranks", "num_nodes", "most_per_node"):
            require_count("rank group", field, getattr(self, field))
        least = -(-self.num_ranks // self.num_nodes)
        most = self.num_ranks - self.num_nodes + 1
        if not least <= self.most_per_node <= most:
            raise ValueError(
                f"rank group: most_per_node must be {least} to {most} for {self.num_ranks} ranks "
                f"on {self.num_nodes} nodes, got {self.most_per_node}"
            )
        for level in ("inner", "outer"):
            bandwidth, latency = f"{level}_bandwidth_bytes_per_s", f"{level}_latency_s"
            require_positive("rank group", bandwidth, getattr(self, bandwidth))
            require_non_negative("rank group", latency, getattr(self, latency))

    @property
    def one_level(self) -> tuple[float, float] | None:
        """Bandwidth and latency of all hops where they are of one kind, else None."""
        if self.num_nodes == 1:
            return self.inner_bandwidth_bytes_per_s, self.inner_latency_s
        if self.most_per_node == 1:
            return self.outer_bandwidth_bytes_per_s, self.outer_latency_s
        return None

    @property
    def pace_bytes_per_s(self) -> float:
        """Bandwidth of the slowest kind of hop."""
        if self.one_level is not None:
            return self.one_level[0]
        return min(self.inner_bandwidth_bytes_per_s, self.outer_bandwidth_bytes_per_s)


def group_all_gather_s(payload_bytes: float, group: RankGroup) -> float:
    """Time until every rank of a ring over two levels holds the parts of all. [s]

    ``(n - k) inner latency + (k - 1) outer latency + (n - 1) / n payload / pace`` [3]_.

    Examples
    --------
    Two nodes of four: 6 s and 1 s of latencies, and 7 of 8 parts at 2 bytes/s.

    >>> group = RankGroup(
    ...     num_ranks=8, num_nodes=2, most_per_node=4, inner_bandwidth_bytes_per_s=4.0,
    ...     inner_latency_s=1.0, outer_bandwidth_bytes_per_s=2.0, outer_latency_s=10.0,
    ... )
    >>> group_all_gather_s(16.0, group)
    23.0
    """
    if group.one_level is not None:
        return all_gather_s(payload_bytes, group.num_ranks, *group.one_level)
    require_non_negative("collective", "payload_bytes", payload_bytes)
    return ring_over_nodes_s(
        payload_bytes,
        group.num_ranks,
        group.num_nodes,
        (group.inner_latency_s, group.outer_latency_s),
        group.pace_bytes_per_s,
    )


def group_reduce_scatter_s(payload_bytes: float, group: RankGroup) -> float:
    """Time until every rank of a ring over two levels holds its part of the sum. [s]

    The steps of `group_all_gather_s`, in reverse.
    """
    if group.one_level is not None:
        return reduce_scatter_s(payload_bytes, group.num_ranks, *group.one_level)
    return group_all_gather_s(payload_bytes, group)


def group_ring_all_reduce_s(payload_bytes: float, group: RankGroup) -> float:
    """Time until every rank of a ring over two levels holds the sum: both of the above. [s]"""
    if group.one_level is not None:
        return ring_all_reduce_s(payload_bytes, group.num_ranks, *group.one_level)
    return 2 * group_all_gather_s(payload_bytes, group)


def group_tree_all_reduce_s(payload_bytes: float, group: RankGroup) -> float:
    """Time until every rank holds the sum, over a double binary tree of nodes. [s]

    ``2 ((m - 1) inner latency + ceil(log2 k) outer latency) + 2 payload / pace``: up and down
    chains of the ``m`` ranks in a node, and two trees of nodes that carry half each, so that every
    node sends and receives the payload twice [1]_ [2]_.

    Examples
    --------
    Two nodes of four: 2 (3 + 10) s of latencies, and 32 bytes at 2 bytes/s.

    >>> group = RankGroup(
    ...     num_ranks=8, num_nodes=2, most_per_node=4, inner_bandwidth_bytes_per_s=4.0,
    ...     inner_latency_s=1.0, outer_bandwidth_bytes_per_s=2.0, outer_latency_s=10.0,
    ... )
    >>> group_tree_all_reduce_s(16.0, group)
    42.0
    """
    require_non_negative("collective", "payload_bytes", payload_bytes)
    if group.num_ranks == 1:
        return 0.0
    return tree_over_nodes_s(
        payload_bytes,
        group.most_per_node,
        group.num_nodes,
        (group.inner_latency_s, group.outer_latency_s),
        group.pace_bytes_per_s,
    )


def group_all_reduce_s(payload_bytes: float, group: RankGroup) -> float:
    """Time of the quicker of ring and tree, as NCCL chooses between them [3]_. [s]

    On one node that is always the ring: the tree is a chain there, of the same latency.

    Examples
    --------
    Of 512 nodes, small sums take the tree of 2 x 9 s of latency, large ones the ring.

    >>> nodes = RankGroup(
    ...     num_ranks=512, num_nodes=512, most_per_node=1, inner_bandwidth_bytes_per_s=1.0,
    ...     inner_latency_s=0.0, outer_bandwidth_bytes_per_s=1.0, outer_latency_s=1.0,
    ... )
    >>> group_all_reduce_s(1.0, nodes), group_all_reduce_s(512e6, nodes)
    (20.0, 1022001022.0)
    """
    ring_s = group_ring_all_reduce_s(payload_bytes, group)
    if group.num_nodes == 1:
        return ring_s
    return min(ring_s, group_tree_all_reduce_s(payload_bytes, group))


def group_shift_s(payload_bytes: float, group: RankGroup) -> float:
    """Time until every rank of a ring has sent a payload to the next one. [s]

    All send at once, so the slowest hop counts. Of a ring over nodes one rank sends out of each, at
    the outer bandwidth of the group.

    Examples
    --------
    >>> group = RankGroup(
    ...     num_ranks=4, num_nodes=2, most_per_node=2, inner_bandwidth_bytes_per_s=2.0,
    ...     inner_latency_s=1.0, outer_bandwidth_bytes_per_s=1.0, outer_latency_s=10.0,
    ... )
    >>> group_shift_s(8.0, group)
    18.0
    """
    require_non_negative("collective", "payload_bytes", payload_bytes)
    if group.num_ranks == 1:
        return 0.0
    hops = [(group.inner_bandwidth_bytes_per_s, group.inner_latency_s)]
    if group.num_nodes > 1:
        hops.append((group.outer_bandwidth_bytes_per_s, group.outer_latency_s))
    if group.num_nodes > 1 and group.most_per_node == 1:
        del hops[0]
    return max(latency_s + payload_bytes / bandwidth for bandwidth, latency_s in hops)


def group_all_to_all_s(payload_bytes: float, group: RankGroup) -> float:
    """Time until every rank has sent its part of its payload to every other rank. [s]

    Parameters
    ----------
    payload_bytes
        Buffer that each rank holds; the ``1 / n`` for itself stays. [bytes]
    group
        Ranks, as many on every node.

    Raises
    ------
    ValueError
        If the nodes have unequal numbers of ranks.

    Notes
    -----
    All pairs at a time, as in a group of sends and receives [4]_: the longer of ``inner latency +
    (m - 1) part / inner bandwidth`` and ``outer latency + (n - m) m part / outer bandwidth``, as
    the ``m`` ranks of a node share its way out.

    Examples
    --------
    Two nodes of two, 2 bytes a pair: 1 + 1 s inside, and meanwhile 10 + 2 x 4 s.

    >>> group = RankGroup(
    ...     num_ranks=4, num_nodes=2, most_per_node=2, inner_bandwidth_bytes_per_s=2.0,
    ...     inner_latency_s=1.0, outer_bandwidth_bytes_per_s=1.0, outer_latency_s=10.0,
    ... )
    >>> group_all_to_all_s(8.0, group)
    18.0
    """
    require_non_negative("collective", "payload_bytes", payload_bytes)
    size = group.most_per_node
    if group.num_ranks != group.num_nodes * size:
        raise ValueError(
            f"all-to-all: ranks must be as many on each of {group.num_nodes} nodes, "
            f"got {group.num_ranks} with {size} on one"
        )
    part_bytes = payload_bytes / group.num_ranks
    inner_s = outer_s = 0.0
    if size > 1:
        inner_bytes = (size - 1) * part_bytes
        inner_s = group.inner_latency_s + inner_bytes / group.inner_bandwidth_bytes_per_s
    if group.num_nodes > 1:
        outer_bytes = (group.num_ranks - size) * size * part_bytes
        outer_s = group.outer_latency_s + outer_bytes / group.outer_bandwidth_bytes_per_s
    return max(inner_s, outer_s)
