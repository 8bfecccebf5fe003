"""Orders of domains that have good links between neighbours."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations

import numpy as np

from des import Topology, UnreachableError
from des.base.jit import lean_kernel
from des.costs.message_times import direct_links, hop_goodput_bytes_per_s, pairs_apart

MOST_DOMAINS_FOR_SUBSETS = 12
"""Most domains of which the best chain of each subset is searched."""

Order = tuple[int, ...]

_Chain = tuple[float, float, Order]
"""Bandwidth of the slowest link [bytes/s], sum of the latencies [s], and domains of a chain."""


def mutual_links(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Bandwidth [bytes/s] and latency [s] of the way between every two domains, each (K, K).

    The bandwidth is that of the slowest hop in the worse direction, as activations go one way and
    their gradients the other; the latency is there and back. A TCP window counts. Where no way
    leads there and back they are 0 and ``inf``.
    """
    size = topology.num_domains
    if len(topology.links) == size * (size - 1):
        goodput, there_s = direct_links(topology)
        back_s = there_s + there_s.T
        return np.minimum(goodput, goodput.T), np.where(pairs_apart(size), back_s, np.inf)
    bandwidth, latency = np.zeros((size, size)), np.full((size, size), np.inf)
    for here, there in combinations(range(size), 2):
        try:
            hops = topology.route(here, there) + topology.route(there, here)
        except UnreachableError:
            continue
        links = [topology.links[hop] for hop in hops]
        rates = (hop_goodput_bytes_per_s(topology, hop) for hop in hops)
        bandwidth[here, there] = bandwidth[there, here] = min(rates)
        latency[here, there] = latency[there, here] = sum(link.latency_s for link in links)
    return bandwidth, latency


def best_chains(bandwidth: np.ndarray, latency: np.ndarray) -> dict[int, Order]:
    """Order the domains of every subset so that the slowest link between neighbours is fastest.

    Subsets are numbers of which bit ``d`` stands for domain ``d``. Among the chains to the same
    last domain that of least latency wins a tie, then the one through earlier domains. Subsets that
    no chain joins are left out.

    Notes
    -----
    Dynamic programming over (subset, last domain): the slowest link of a longer chain is that of
    the chain without its last domain, or the link to that.
    """
    chains: dict[int, _Chain] = {}
    for (subset, _), chain in _paths(bandwidth, latency, range(len(bandwidth))).items():
        if subset not in chains or _worse(chain) < _worse(chains[subset]):
            chains[subset] = chain
    return {subset: chains[subset][2] for subset in sorted(chains)}


def _paths(
    bandwidth: np.ndarray, latency: np.ndarray, starts: Iterable[int]
) -> dict[tuple[int, int], _Chain]:
    """Find the best chain from one of the starts, by subset and last domain."""
    size = len(bandwidth)
    best: dict[tuple[int, int], _Chain] = {
        (1 << start, start): (math.inf, 0.0, (start,)) for start in starts
    }
    for subset in range(1, 1 << size):
        for last in range(size):
            if (subset, last) not in best:
                continue
            slowest, total_s, order = best[subset, last]
            for other in range(size):
                if subset >> other & 1 or not bandwidth[last, other] > 0.0:
                    continue
                longer = (
                    min(slowest, float(bandwidth[last, other])),
                    total_s + float(latency[last, other]),
                    (*order, other),
                )
                key = (subset | 1 << other, other)
                if key not in best or _worse(longer) < _worse(best[key]):
                    best[key] = longer
    return best


def _worse(chain: _Chain) -> _Chain:
    """Sort by the slowest link, fast ones first, then by latency and order."""
    slowest, total_s, order = chain
    return -slowest, total_s, order


def best_chain(bandwidth: np.ndarray, latency: np.ndarray, members: Sequence[int]) -> Order | None:
    """Order some domains so that their slowest link is fastest; None where no chain joins them.

    Of more than `MOST_DOMAINS_FOR_SUBSETS` the chain is `grow_chain` from the earliest that
    reaches all.
    """
    chosen = sorted(members)
    within = np.ix_(chosen, chosen)
    if len(chosen) > MOST_DOMAINS_FOR_SUBSETS:
        grown = (grow_chain(bandwidth[within], start) for start in range(len(chosen)))
        found = next((chain for chain in grown if len(chain) == len(chosen)), None)
    else:
        found = best_chains(bandwidth[within], latency[within]).get((1 << len(chosen)) - 1)
    return None if found is None else tuple(chosen[index] for index in found)


def best_ring(bandwidth: np.ndarray, latency: np.ndarray, members: Sequence[int]) -> Order | None:
    """Order some domains to a ring whose slowest link is fastest; None where there is none.

    The ring begins with the earliest domain. Of more than `MOST_DOMAINS_FOR_SUBSETS` it is the
    `best_chain`, closed.
    """
    chosen = sorted(members)
    if len(chosen) <= 2 or len(chosen) > MOST_DOMAINS_FOR_SUBSETS:
        return best_chain(bandwidth, latency, chosen)
    within = np.ix_(chosen, chosen)
    rates, delays_s = bandwidth[within], latency[within]
    everyone = (1 << len(chosen)) - 1
    rings = []
    for (subset, last), (slowest, total_s, order) in _paths(rates, delays_s, [0]).items():
        if subset == everyone and rates[last, 0] > 0.0:
            closed = (
                min(slowest, float(rates[last, 0])),
                total_s + float(delays_s[last, 0]),
                order,
            )
            rings.append(closed)
    if not rings:
        return None
    return tuple(chosen[index] for index in min(rings, key=_worse)[2])


def grow_chain(bandwidth: np.ndarray, start: int) -> Order:
    """Grow a chain from a domain along the fastest link to one that is not in it yet.

    Ends where no link leads on. The earlier domain wins a tie.
    """
    order = np.empty(len(bandwidth), dtype=np.int64)
    size = _grow(bandwidth, start, order, np.zeros(len(bandwidth), dtype=np.bool_))
    return tuple(order[:size].tolist())


@lean_kernel
def _grow(bandwidth: np.ndarray, start: int, order: np.ndarray, is_in: np.ndarray) -> int:
    """Write the domains of a chain; returns how many."""
    last, size = start, 0
    while last >= 0:
        order[size], is_in[last] = last, True
        size += 1
        here, last, most = last, -1, 0.0
        for there in range(is_in.size):
            if not is_in[there] and bandwidth[here, there] > most:
                last, most = there, bandwidth[here, there]
    return size


def sets_by_mutual_bandwidth(bandwidth: np.ndarray, size: int) -> list[Order]:
    """Sets of domains of a size, those with the fastest slowest link between any two first.

    Ties go by the sum over all pairs, then to the earlier domains.
    """

    def slowness(members: Order) -> tuple[float, float, Order]:
        pairs = [float(bandwidth[pair]) for pair in combinations(members, 2)]
        return -min(pairs, default=math.inf), -math.fsum(pairs), members

    return sorted(combinations(range(len(bandwidth)), size), key=slowness)


def orders_to_look_at(
    bandwidth: np.ndarray, latency: np.ndarray, *, most_stages: int, all_up_to: int
) -> Iterator[Order]:
    """Yield orders of domains, none longer than the most stages, that are worth a look.

    All orders of all subsets of up to ``all_up_to`` domains; of more, the best chain of every
    subset; of more than `MOST_DOMAINS_FOR_SUBSETS`, the beginnings of the chains that grow from
    each domain.
    """
    size = len(bandwidth)
    if size <= all_up_to:
        for length in range(1, min(size, most_stages) + 1):
            yield from permutations(range(size), length)
    elif size <= MOST_DOMAINS_FOR_SUBSETS:
        chains = best_chains(bandwidth, latency).values()
        yield from (chain for chain in chains if len(chain) <= most_stages)
    else:
        for start in range(size):
            chain = grow_chain(bandwidth, start)
            yield from (chain[:length] for length in range(1, min(len(chain), most_stages) + 1))
