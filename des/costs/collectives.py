"""Times of collective operations under the alpha-beta model: steps of latency and bytes.

A message of ``n`` bytes takes ``latency_s + n / bandwidth_bytes_per_s``. All ranks work at the same
pace, the steps of one operation do not overlap, and the arithmetic of a reduction is free. The
payload is the buffer that a rank holds before an all-reduce or a reduce-scatter, or after an
all-gather. One rank has nothing to exchange.

References
----------
.. [1] P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
   workstations", J. Parallel Distrib. Comput. 69(2), 2009.
.. [2] R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations
   in MPICH", Int. J. High Perform. Comput. Appl. 19(1), 2005.
"""

from collections.abc import Sequence

from des.base.checks import require_count, require_non_negative, require_positive


def all_gather_s(
    payload_bytes: float, num_ranks: int, bandwidth_bytes_per_s: float, latency_s: float = 0.0
) -> float:
    """Time until every rank of a ring holds the parts of all. [s]

    Parameters
    ----------
    payload_bytes
        Size of the whole, of which each rank brings ``1 / num_ranks``. [bytes]
    num_ranks
        Ranks in the ring.
    bandwidth_bytes_per_s, latency_s
        Slowest hop of the ring.

    Raises
    ------
    ValueError
        If ``num_ranks < 1``, ``payload_bytes < 0`` or the hop is impossible.

    Notes
    -----
    ``n - 1`` steps of ``payload_bytes / n`` (section 3 of [2]_).

    Examples
    --------
    >>> all_gather_s(8e9, 4, 1e9)
    6.0
    """
    require_non_negative("collective", "payload_bytes", payload_bytes)
    require_count("collective", "num_ranks", num_ranks)
    require_positive("collective", "bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    require_non_negative("collective", "latency_s", latency_s)
    return (num_ranks - 1) * (latency_s + payload_bytes / num_ranks / bandwidth_bytes_per_s)


def reduce_scatter_s(
    payload_bytes: float, num_ranks: int, bandwidth_bytes_per_s: float, latency_s: float = 0.0
) -> float:
    """Time until every rank of a ring holds its ``1 / num_ranks`` of the sum. [s]

    The steps of `all_gather_s`, in reverse [1]_.

    Examples
    --------
    >>> reduce_scatter_s(8e9, 4, 1e9, latency_s=0.5)
    7.5
    """
    return all_gather_s(payload_bytes, num_ranks, bandwidth_bytes_per_s, latency_s)


def ring_all_reduce_s(
    payload_bytes: float, num_ranks: int, bandwidth_bytes_per_s: float, latency_s: float = 0.0
) -> float:
    """Time until every rank of a ring holds the sum: a reduce-scatter, then an all-gather [1]_. [s]

    ``2 (n - 1) latency_s + 2 (n - 1) / n payload_bytes / bandwidth_bytes_per_s``. No all-reduce
    sends fewer bytes a rank.

    Examples
    --------
    >>> round(ring_all_reduce_s(8e9, 4, 1e9, latency_s=0.01), 6)
    12.06
    """
    return reduce_scatter_s(
        payload_bytes, num_ranks, bandwidth_bytes_per_s, latency_s
    ) + all_gather_s(payload_bytes, num_ranks, bandwidth_bytes_per_s, latency_s)


def halving_all_reduce_s(
    payload_bytes: float,
    hops: Sequence[tuple[float, float]],
    fold_hop: tuple[float, float] | None = None,
) -> float:
    """Time of an all-reduce by recursive halving and doubling (section 4.5 of [2]_). [s]

    Parameters
    ----------
    payload_bytes
        Buffer of each rank. [bytes]
    hops
        Bandwidth and latency of the slowest pair of ranks that exchange in each step of the
        halving: step ``i`` from 1 on carries ``payload_bytes / 2**i``. ``2**len(hops)`` ranks.
    fold_hop
        Slowest pair of a rank above that power of two and the one that it hands its buffer to
        before, and has the sum from afterwards; None if there is none.

    Notes
    -----
    The doubling is the halving in reverse. On equal hops, and a power of two of ranks, that is
    ``2 log2(n) latency_s + 2 (n - 1) / n payload_bytes / bandwidth_bytes_per_s``.

    Examples
    --------
    Four ranks: 4 and 2 bytes, there and back, over hops of 1 byte/s and 1 s.

    >>> halving_all_reduce_s(8.0, [(1.0, 1.0), (1.0, 1.0)])
    16.0
    >>> halving_all_reduce_s(8.0, [(1.0, 1.0), (1.0, 1.0)], fold_hop=(2.0, 1.0))
    26.0
    """
    require_non_negative("collective", "payload_bytes", payload_bytes)
    carried = [payload_bytes / 2**step for step in range(1, len(hops) + 1)]
    if fold_hop is not None:
        hops, carried = [*hops, fold_hop], [*carried, payload_bytes]
    one_way_s = 0.0
    for (bandwidth_bytes_per_s, latency_s), sent_bytes in zip(hops, carried, strict=True):
        require_positive("collective", "bandwidth_bytes_per_s", bandwidth_bytes_per_s)
        require_non_negative("collective", "latency_s", latency_s)
        one_way_s += latency_s + sent_bytes / bandwidth_bytes_per_s
    return 2 * one_way_s


def hierarchical_all_reduce_s(
    payload_bytes: float,
    *,
    num_domains: int,
    ranks_per_domain: int,
    inner_bandwidth_bytes_per_s: float,
    outer_bandwidth_bytes_per_s: float,
    inner_latency_s: float = 0.0,
    outer_latency_s: float = 0.0,
) -> float:
    """Time of an all-reduce that crosses between domains once for all ranks of a domain. [s]

    Parameters
    ----------
    payload_bytes
        Buffer of each rank. [bytes]
    num_domains, ranks_per_domain
        Domains in the outer ring, and equal numbers of ranks in each.
    inner_bandwidth_bytes_per_s, inner_latency_s
        Slowest hop between ranks of a domain.
    outer_bandwidth_bytes_per_s, outer_latency_s
        Slowest hop between domains; its bandwidth is that of the whole domain, which the ranks
        share, so each of their rings over ``1 / ranks_per_domain`` of the buffer has its share.

    Notes
    -----
    Reduce-scatter inside, a ring all-reduce between domains, all-gather inside. A flat ring sends
    about as much over each border, but pays the outer latency in all its
    ``2 (num_domains * ranks_per_domain - 1)`` steps instead of ``2 (num_domains - 1)``.

    Examples
    --------
    >>> hierarchical_all_reduce_s(
    ...     8e9,
    ...     num_domains=2,
    ...     ranks_per_domain=4,
    ...     inner_bandwidth_bytes_per_s=2e9,
    ...     outer_bandwidth_bytes_per_s=1e9,
    ... )
    14.0
    """
    inner = (ranks_per_domain, inner_bandwidth_bytes_per_s, inner_latency_s)
    return (
        reduce_scatter_s(payload_bytes, *inner)
        + ring_all_reduce_s(
            payload_bytes, num_domains, outer_bandwidth_bytes_per_s, outer_latency_s
        )
        + all_gather_s(payload_bytes, *inner)
    )
