"""Action encodings: what an action says, and that nothing goes unsaid."""

from itertools import combinations, pairwise, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import placements

from agents.ppo.actions import OrderSplitCodec, PerLayerCodec, action_codec
from des import Placement


def contiguous_placements(num_domains: int, num_layers: int) -> set[Placement]:
    """Every ordered choice of domains with every split that gives each at least one layer."""
    return {
        Placement.contiguous(order, [end - start for start, end in pairwise((0, *cut, num_layers))])
        for num_stages in range(1, min(num_domains, num_layers) + 1)
        for order in permutations(range(num_domains), num_stages)
        for cut in combinations(range(1, num_layers), num_stages - 1)
    }


@given(placement=placements(4, 7))
def test_per_layer_action_is_the_placement_itself(placement):
    codec = PerLayerCodec(num_domains=4, num_layers=7)

    assert codec.decode(placement.domain_of_layer) == placement
    assert codec.sizes == (4,) * 7
    assert codec.ordinal_starts == (None,) * 7


@pytest.mark.parametrize(
    ("action", "domain_of_layer"),
    [
        ((0, 0, 2, 4), (0, 0, 1, 1, 2, 2)),
        ((0, 0, 4, 2), (0, 0, 1, 1, 2, 2)),  # split points in any order
        ((1, 0, 1, 2), (1, 0, 2, 2, 2, 2)),  # picks are among those left: 1, then 0 of (0, 2)
        ((2, 1, 3, 6), (2, 2, 2, 1, 1, 1)),  # 1 of (0, 1); the last one, 0, gets nothing
        ((1, 1, 3, 3), (1, 1, 1, 0, 0, 0)),  # 2 in the middle gets nothing
        ((2, 0, 0, 0), (1, 1, 1, 1, 1, 1)),
    ],
)
def test_order_and_split_by_hand(action, domain_of_layer):
    codec = OrderSplitCodec(num_domains=3, num_layers=6)

    assert codec.sizes == (3, 2, 7, 7)
    assert codec.decode(action).domain_of_layer == domain_of_layer


@pytest.mark.parametrize("num_domains", [1, 2, 3, 4])
@pytest.mark.parametrize("num_layers", [1, 2, 3, 5, 6])
def test_order_and_split_say_every_contiguous_placement_and_no_other(num_domains, num_layers):
    codec = OrderSplitCodec(num_domains=num_domains, num_layers=num_layers)

    said = {codec.decode(action) for action in product(*map(range, codec.sizes))}
    assert said == contiguous_placements(num_domains, num_layers)


@given(num_domains=st.integers(1, 8), num_layers=st.integers(1, 200), draw=st.data())
def test_order_and_split_place_all_layers_and_visit_no_domain_twice(num_domains, num_layers, draw):
    codec = OrderSplitCodec(num_domains=num_domains, num_layers=num_layers)
    action = draw.draw(st.tuples(*(st.integers(0, size - 1) for size in codec.sizes)))

    placement = codec.decode(action)
    visited = [stage.domain for stage in placement.stages]
    assert len(placement.domain_of_layer) == num_layers
    assert len(set(visited)) == len(visited)
    assert set(visited) <= set(range(num_domains))


@given(num_domains=st.integers(2, 8), share=st.integers(1, 20))
def test_ordered_components_start_at_the_even_split(num_domains, share):
    num_layers = num_domains * share
    codec = action_codec("order_split", num_domains, num_layers)

    assert len(codec.ordinal_starts) == len(codec.sizes)
    action = [
        0 if start is None else round(start * (size - 1))
        for start, size in zip(codec.ordinal_starts, codec.sizes, strict=True)
    ]
    assert codec.decode(action) == Placement.even(num_domains, num_layers)


def test_one_domain_has_no_order():
    with pytest.raises(ValueError, match="order_split needs at least 2 domains to order, got 1"):
        action_codec("order_split", 1, 8)


def test_unknown_encoding_is_refused_with_those_there_are():
    with pytest.raises(
        ValueError, match=r"actions: must be one of per_layer, order_split; got 'split'"
    ):
        action_codec("split", 2, 4)
