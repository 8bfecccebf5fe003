"""Extensions of the ASTRA-sim engine's networks: own links of pairs, and several dimensions."""

import math

import pytest
from astra_messages import (
    Sent,
    deliver,
    dimension,
    each_pair,
    message_lists,
    nearby,
    network,
    one_dimensional_networks,
    rates_gb_per_s,
)
from hypothesis import given
from hypothesis import strategies as st

from astra_sim.core.events import EventQueue
from astra_sim.files.errors import AbortError
from astra_sim.files.network_config import PairwiseDimension
from astra_sim.network import make_network

BACKENDS = pytest.mark.parametrize("backend", ["unaware", "aware"])

UNEVEN = each_pair([[0, 1, 2], [4, 0, 1], [1, 1, 0]], [[0, 100, 200], [300, 0, 5], [6, 7, 0]])
"""Three places: 1 byte/ns and 100 ns from 0 to 1, but 4 bytes/ns and 300 ns back."""


# A link of its own for every ordered pair.


@BACKENDS
def test_every_ordered_pair_has_its_own_figures(backend):
    messages = [Sent(0, 0, 1, 1000), Sent(0, 1, 0, 1000), Sent(0, 0, 2, 1000), Sent(0, 2, 1, 1000)]

    arrivals = deliver(network(UNEVEN), messages, backend=backend)

    assert arrivals.times_ns == (1100, 550, 700, 1007)


@BACKENDS
@given(num_npus=st.integers(2, 6), bandwidth=rates_gb_per_s(), chosen=st.data())
def test_equal_pairs_are_fully_connected(backend, num_npus, bandwidth, chosen):
    """To the last bit and in the order of arrival."""
    latency_ns = chosen.draw(st.floats(0, 1e6))
    messages = chosen.draw(message_lists(num_npus))
    equal = PairwiseDimension(
        bandwidth_matrix_gb_per_s=((bandwidth,) * num_npus,) * num_npus,
        latency_matrix_ns=((latency_ns,) * num_npus,) * num_npus,
    )
    full = dimension("FullyConnected", num_npus, bandwidth, latency_ns)

    assert deliver(network(equal), messages, backend=backend) == deliver(
        network(full), messages, backend=backend
    )


def test_unaware_between_domains_the_pair_of_domains_counts():
    """NPUs 0 and 1 are domain 0, 2 and 3 domain 1; 0 and 3 differ inside, which alone is paid."""
    config = network(nearby(2), UNEVEN)
    messages = [Sent(0, 0, 2, 1000), Sent(0, 3, 1, 1000), Sent(0, 0, 3, 1000)]

    assert deliver(config, messages, backend="unaware").times_ns == (1100, 550, 1000)


# Several dimensions in the aware network.


def test_pairs_of_npus_between_the_same_domains_share_the_link():
    """0 -> 2 and 1 -> 3 both cross from domain 0 to 1; other pairs and the way back are free."""
    messages = [
        Sent(0, 0, 2, 1000),
        Sent(0, 1, 3, 1000),
        Sent(0, 1, 5, 1000),
        Sent(0, 2, 0, 1000),
        Sent(0, 2, 4, 1000),
    ]

    arrivals = deliver(network(nearby(2), UNEVEN), messages, backend="aware")

    assert arrivals.times_ns == (1100, 2100, 700, 550, 1005)


def test_a_message_goes_by_dimension_0_in_its_own_domain_first():
    """0 -> 3 holds up 0 -> 1, which has the same way, but not 2 -> 3 in the domain it goes to."""
    messages = [Sent(0, 0, 3, 1000), Sent(0, 0, 1, 1000), Sent(0, 2, 3, 1000)]

    arrivals = deliver(network(nearby(2), UNEVEN), messages, backend="aware")

    assert arrivals.times_ns == (1000 + 1100, 2000, 1000)


def test_a_link_of_the_middle_dimension_serves_one_place_of_the_highest():
    """Of 2 x 2 x 2: 1 -> 3 meets 0 -> 2; 4 -> 6 is the same link of the other half."""
    messages = [Sent(0, 0, 2, 1000), Sent(0, 1, 3, 1000), Sent(0, 4, 6, 1000), Sent(0, 0, 4, 1000)]

    arrivals = deliver(
        network(nearby(2), nearby(2), nearby(2)),
        messages,
        backend="aware",
        multi_dimensional=True,
    )

    assert arrivals.times_ns == (1000, 2000, 1000, 1000)


def test_a_switch_of_a_higher_dimension_has_one_link_a_domain():
    """Both leave domain 0 by its link up; they part at the switch."""
    messages = [Sent(0, 0, 2, 1000), Sent(0, 1, 5, 1000)]

    arrivals = deliver(
        network(nearby(2), nearby(3, "Switch")), messages, backend="aware", multi_dimensional=True
    )

    assert arrivals.times_ns == (2000, 3000)


@given(inner=one_dimensional_networks(), outer=one_dimensional_networks(), chosen=st.data())
def test_a_lone_message_pays_every_hop_of_every_dimension(inner, outer, chosen):
    dimensions = (*inner.dimensions, *outer.dimensions)
    config = network(*dimensions)
    message = chosen.draw(message_lists(config.num_npus))[0]

    arrivals = deliver(config, [message], backend="aware", multi_dimensional=True)

    places = zip(
        dimensions, config.address(message.source), config.address(message.target), strict=True
    )
    taken_ns = sum(
        each.num_hops(*ends) * math.floor(each.latency_ns + message.num_bytes / each.bytes_per_ns)
        for each, *ends in places
    )
    assert arrivals.times_ns == (message.start_ns + taken_ns,)


@given(inner=one_dimensional_networks(), outer=one_dimensional_networks(), chosen=st.data())
def test_traffic_of_one_dimension_is_as_if_it_were_alone(inner, outer, chosen):
    """Inside any one domain, and between the NPUs of one place in all domains."""
    both = network(*inner.dimensions, *outer.dimensions)
    within = chosen.draw(message_lists(inner.num_npus))
    domain = chosen.draw(st.integers(0, outer.num_npus - 1)) * inner.num_npus
    between = chosen.draw(message_lists(outer.num_npus))
    place = chosen.draw(st.integers(0, inner.num_npus - 1))

    for alone, messages, stride, first in (
        (inner, within, 1, domain),
        (outer, between, inner.num_npus, place),
    ):
        moved = [
            Sent(start_ns, source * stride + first, target * stride + first, num_bytes)
            for start_ns, source, target, num_bytes in messages
        ]
        assert deliver(both, moved, backend="aware", multi_dimensional=True) == deliver(
            alone, messages, backend="aware"
        )


def test_a_message_to_itself_has_no_link_in_several_dimensions():
    config = network(nearby(2, "Switch"), UNEVEN)

    with pytest.raises(AbortError, match="source and target must differ, got NPU 3 twice"):
        deliver(config, [Sent(0, 3, 3, 1000)], backend="aware")


def test_a_ring_of_two_aborts_in_any_dimension():
    with pytest.raises(AbortError, match="dimension 1: an aware Ring must have at least 3"):
        make_network(
            network(nearby(3), nearby(2, "Ring")),
            EventQueue(),
            backend="aware",
            multi_dimensional=True,
        )
