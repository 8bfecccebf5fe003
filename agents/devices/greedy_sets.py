"""Greedy choice of GPUs: from every GPU on, add the closest to those chosen."""

from collections.abc import Iterator, Sequence

import numpy as np

from agents.devices.goodness import pair_figures, score_of_places
from agents.devices.numa_policies import gpus_near_nodes
from des.devices.server import Server

_NVLINK, _DISTANCE = 1 << 40, 1 << 20


def greedy_places(
    server: Server, num_gpus: int, free: Sequence[int], most_nodes: int | None = None
) -> list[int]:
    """Places of GPUs that a greedy choice finds among the free ones.

    From every free GPU on the next one is that with the most NVLinks to those chosen, then with the
    least distances, then with the nearest card, then the first. Of the sets found this way the best
    in all parts is taken, the first of equals. With at most ``most_nodes`` NUMA nodes the choice is
    repeated in pools: the GPUs near a node and near those others that bring most.
    """
    pools = (
        [tuple(free)] if most_nodes is None else list(_pools(server, num_gpus, free, most_nodes))
    )
    found: set[tuple[int, ...]] = {
        tuple(sorted(chosen)) for pool in pools for chosen in _from_each(server, num_gpus, pool)
    }
    scores = [(score_of_places(server, chosen, ()), chosen) for chosen in sorted(found)]
    best = max(score.inner_order for score, _ in scores)
    equal = [chosen for score, chosen in scores if score.inner_order == best]
    orders = [score_of_places(server, chosen, free).order for chosen in equal]
    return list(equal[orders.index(max(orders))])


def _pools(
    server: Server, num_gpus: int, free: Sequence[int], most_nodes: int
) -> Iterator[tuple[int, ...]]:
    """Yield sets of free GPUs near a number of NUMA nodes that are large enough, one a node."""
    near = gpus_near_nodes(server, free)
    for gpus in near.values():
        pool = set(gpus)
        for _ in range(most_nodes - 1):
            pool |= max(near.values(), key=lambda other: len(other - pool))
        if len(pool) >= num_gpus:
            yield tuple(sorted(pool))


def _from_each(server: Server, num_gpus: int, pool: Sequence[int]) -> Iterator[list[int]]:
    """Yield the greedy choice from every GPU of a pool on."""
    figures, gpus = pair_figures(server), np.array(pool)
    pairs = figures.nvlinks * _NVLINK - figures.distances * _DISTANCE
    gains = pairs[np.ix_(gpus, gpus)]
    cards = figures.cards[gpus]
    for start in range(len(gpus)):
        chosen, gain = [start], gains[start] - cards
        for _ in range(num_gpus - 1):
            gain[chosen[-1]] = np.iinfo(np.int64).min // 2
            chosen.append(int(gain.argmax()))
            gain += gains[chosen[-1]]
        yield gpus[chosen].tolist()
