"""Formulas of GPUs on several nodes, the same source in Python and in compiled code.

``n`` ranks lie on ``k`` nodes, and hops inside a node differ from those between nodes. The slowest
kind of hop sets the pace of the bytes.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy.typing as npt

from des.base.scalar import scalar

AmountT = TypeVar("AmountT", float, npt.NDArray[Any])


@scalar
def ring_over_nodes_s(
    payload_bytes: AmountT,
    num_ranks: AmountT,
    num_nodes: AmountT,
    latencies_s: tuple[float, float],
    pace_bytes_per_s: float,
) -> AmountT:
    """Time in which a ring hands a payload on, as `des.costs.node_collectives` has it. [s]

    ``(n - k) inner latency + (k - 1) outer latency + (n - 1) / n payload / pace``, with both
    latencies in this order.

    Examples
    --------
    >>> ring_over_nodes_s(16.0, 8, 2, (1.0, 10.0), 2.0)
    23.0
    """
    inner_s, outer_s = latencies_s
    latency_s = (num_ranks - num_nodes) * inner_s + (num_nodes - 1) * outer_s
    found: AmountT = latency_s + (num_ranks - 1) * payload_bytes / num_ranks / pace_bytes_per_s
    return found


@scalar
def tree_over_nodes_s(
    payload_bytes: float,
    ranks_per_node: int,
    num_nodes: int,
    latencies_s: tuple[float, float],
    pace_bytes_per_s: float,
) -> float:
    """Time of an all-reduce over a double binary tree of nodes, with chains inside them. [s]

    ``2 ((m - 1) inner latency + ceil(log2 k) outer latency + payload / pace)``.

    Examples
    --------
    >>> tree_over_nodes_s(16.0, 4, 2, (1.0, 10.0), 2.0)
    42.0
    """
    depth = 0
    while num_nodes > 1 << depth:
        depth += 1
    latency_s = (ranks_per_node - 1) * latencies_s[0] + depth * latencies_s[1]
    return 2 * (latency_s + payload_bytes / pace_bytes_per_s)


@scalar
def cards_bytes_per_s(
    num_cards: int, card_bytes_per_s: float, num_senders: int, num_groups: int
) -> float:
    """Bandwidth out of a node for GPUs of one of the groups that share its cards. [bytes/s]

    Each GPU has at most one card at a time.
    """
    return min(float(num_senders), num_cards / num_groups) * card_bytes_per_s


def way_over_links(links: Iterable[tuple[float, float, float]]) -> tuple[float, float]:
    """Bandwidth [bytes/s] and latency [s] of a way: its narrowest link, and all latencies.

    Parameters
    ----------
    links
        Bandwidth and latency of each, and how many flows of one direction share it evenly.

    Examples
    --------
    >>> way_over_links([(100.0, 1.0, 1), (120.0, 0.5, 4)])
    (30.0, 1.5)
    """
    rates, latencies_s, flows = zip(*links, strict=True)
    shares = (rate / max(count, 1) for rate, count in zip(rates, flows, strict=True))
    return min(shares), sum(latencies_s)


@scalar
def message_to_node_s(
    num_bytes: float, tensor: int, bytes_per_s: float, latency_s: float, gather_s: float
) -> tuple[float, float]:
    """Time on the wire and in flight of a message that a tensor group sends to another node. [s]

    Every GPU sends all of it, or its part if it is quicker to gather the parts there.
    """
    whole_s, part_s = num_bytes / bytes_per_s, num_bytes / tensor / bytes_per_s
    if part_s + gather_s < whole_s:
        return part_s, latency_s + gather_s
    return whole_s, latency_s
