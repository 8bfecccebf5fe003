"""Orders of rings: optimal against all permutations, bridged pairs by hand, rings at once."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.devices.patterns import hybrid_cube_mesh
from des.devices.ring_order import best_ring_order, hop_speed, rings_at_once, slowest_hop
from des.devices.servers import server

hops_of_pairs = st.tuples(st.sampled_from((10.0, 20.0, 24.0, 80.0)), st.sampled_from((0.0, 1.0)))


@st.composite
def hop_tables(draw: st.DrawFn) -> list[list[tuple[float, float]]]:
    """Hops of 1 to 6 GPUs."""
    count = draw(st.integers(1, 6))
    table = [[(1.0, 0.0)] * count for _ in range(count)]
    for one in range(count):
        for other in range(one):
            table[one][other] = table[other][one] = draw(hops_of_pairs)
    return table


@settings(max_examples=50)
@given(hops=hop_tables())
def test_no_order_of_up_to_six_gpus_has_a_faster_slowest_hop(hops):
    order = best_ring_order(hops)

    assert sorted(order) == list(range(len(hops)))
    if len(hops) > 1:
        best = max(hop_speed(slowest_hop(hops, each)) for each in permutations(range(len(hops))))
        assert hop_speed(slowest_hop(hops, order)) == best


@settings(max_examples=25)
@given(hops=hop_tables(), data=st.data())
def test_the_slowest_hop_does_not_depend_on_the_numbers_of_the_gpus(hops, data):
    numbers = data.draw(st.permutations(range(len(hops))))
    renumbered = [[hops[one][other] for other in numbers] for one in numbers]

    if len(hops) > 1:
        assert slowest_hop(hops, best_ring_order(hops)) == slowest_hop(
            renumbered, best_ring_order(renumbered)
        )


@pytest.mark.parametrize("name", ["hybrid_cube_mesh", "pcie_two_numa", "pcie_pairs", "nvswitch"])
def test_the_ring_is_as_fast_as_that_of_the_compiled_search(name):
    gpus = server(name)
    hops = [
        list(zip(*row, strict=True))
        for row in zip(gpus.bandwidth_bytes_per_s, gpus.latency_s, strict=True)
    ]

    bandwidth, latency_s = slowest_hop(hops, best_ring_order(hops))
    assert bandwidth == gpus.wires.ring_bandwidth_bytes_per_s[255]
    assert latency_s == gpus.wires.ring_latency_s[255]


def test_many_gpus_at_a_switch_keep_their_order_and_others_are_refused():
    assert best_ring_order([[(300.0, 0.0)] * 72] * 72) == tuple(range(72))
    mixed = [[(300.0 if one // 2 == other // 2 else 24.0, 0.0) for one in range(18)]
             for other in range(18)]  # fmt: skip
    with pytest.raises(ValueError, match=r"at most 16 GPUs .* got 18"):
        best_ring_order(mixed)


def test_the_cube_mesh_of_the_dgx_1_has_three_links_of_rings():
    """With V100 a ring of double links and one of single ones use all 6 links of a GPU, 2 a way."""
    counts = [
        [int(token[2:]) if token.startswith("NV") else 0 for token in row]
        for row in hybrid_cube_mesh()
    ]

    assert rings_at_once(counts) == (2, 1)


def test_gpus_without_a_ring_of_links_have_none():
    assert rings_at_once([[0, 4, 0], [4, 0, 4], [0, 4, 0]]) == ()
