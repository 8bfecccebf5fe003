"""Trees and rings of copies: their times by hand, and the best of all."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from agents.search.rings import grow_ring, quickest_ring
from agents.search.trees import best_tree


def symmetric(size: int, edges: dict[tuple[int, int], float], otherwise: float) -> np.ndarray:
    """Costs of all pairs."""
    found = np.full((size, size), otherwise)
    np.fill_diagonal(found, 0.0)
    for (one, other), cost in edges.items():
        found[one, other] = found[other, one] = cost
    return found


def test_a_chain_of_quick_links_beats_slow_direct_ones_by_hand():
    """Up 1 + 1, down 1 + 1 from the end; from the middle 1 up and 1 down."""
    cost_s = symmetric(3, {(0, 1): 1.0, (1, 2): 1.0}, otherwise=5.0)

    assert best_tree(cost_s, np.zeros((3, 3)), 1) == ((1, 0, 2), (0, 0), 2.0)


def test_many_chunks_take_wide_links_and_few_take_short_ways_by_hand():
    """To C it is 3 s directly and 2 s + 2 s over B; D is 2 s from A.

    From A one chunk is up in 3 s and down in 3 s; of a hundred each link of 3 s is as slow.
    """
    near = {(0, 1): 2.0, (1, 2): 2.0, (0, 2): 3.0, (0, 3): 2.0}
    cost_s, latency_s = symmetric(4, near, otherwise=9.0), np.zeros((4, 4))

    assert best_tree(cost_s, latency_s, 1) == ((0, 1, 3, 2), (0, 0, 0), 6.0)
    many = best_tree(cost_s, latency_s, 100)
    assert (many.order, many.above) == ((0, 1, 2, 3), (0, 1, 0))
    assert many.exchange_s == pytest.approx((4.0 + 4.0 + 99 * 2.0) / 100)


def test_a_ring_grows_by_the_nearest_by_hand():
    """From 2 to 0 in 1 s, on to 1 in 4 s, to 3 in 2 s, and back in 9 s."""
    step_s = np.array(
        [[0.0, 4.0, 1.0, 5.0], [7.0, 0.0, 1.0, 2.0], [1.0, 3.0, 0.0, 6.0], [8.0, 8.0, 9.0, 0.0]]
    )
    order = np.empty(4)

    assert grow_ring(step_s, 4, 2, order) == (9.0, 1.0 + 4.0 + 2.0 + 9.0)
    assert order.tolist() == [2.0, 0.0, 1.0, 3.0]


@pytest.mark.parametrize("count", [3, 5, 6])
def test_the_best_ring_is_the_best_of_all(count):
    step_s = np.random.default_rng(count).uniform(1.0, 2.0, (count, count))

    def slowest_s(ring):
        return max(step_s[a, b] for a, b in pairwise((*ring, ring[0])))

    every = [(0, *rest) for rest in permutations(range(1, count))]
    assert slowest_s(quickest_ring(step_s)) == min(map(slowest_s, every))
