"""The congestion-unaware network of the ASTRA-sim engine."""

import math

import pytest
from astra_messages import (
    Sent,
    deliver,
    dimension,
    message_lists,
    network,
    one_dimensional_networks,
)
from hypothesis import given
from hypothesis import strategies as st

from astra_sim.files.errors import AbortError, AstraSimUsageError

MIB = 2**20


@pytest.mark.parametrize(
    ("topology", "target", "arrival_ns"),
    [
        ("FullyConnected", 3, 33_906_250),
        ("Ring", 1, 33_906_250),
        ("Ring", 2, 63_906_250),
        ("Ring", 3, 93_906_250),
        ("Ring", 4, 63_906_250),
        ("Ring", 5, 33_906_250),
        ("Switch", 3, 63_906_250),
    ],
)
def test_a_message_pays_the_latency_of_every_hop_and_its_bytes_once(topology, target, arrival_ns):
    """1 MiB at 0.25 * 2**30 bytes/s is 3906250 ns; each hop of 30 ms comes on top."""
    config = network(dimension(topology, 6))

    assert deliver(config, [Sent(0, 0, target, MIB)], backend="unaware").times_ns == (arrival_ns,)


def test_the_time_is_truncated_once_over_all_hops():
    """2 * 0.5 + 1000 / 1.073741824 = 932.32 ns; hop by hop it would be 2 * 931."""
    config = network(dimension("Switch", 4, bandwidth_gb_per_s=1.0, latency_ns=0.5))

    assert deliver(config, [Sent(7, 0, 1, 1000)], backend="unaware").times_ns == (7 + 932,)


@pytest.mark.parametrize(("target", "arrival_ns"), [(5, 20_031), (4, 33_906_250), (13, 20_031)])
def test_only_the_lowest_dimension_that_differs_is_charged(target, arrival_ns):
    """NPU 5 of [4, 2, 2] is at (1, 1, 0): a message from 0 pays 500 + 19531.25 ns inside."""
    config = network(
        dimension("Ring", 4, bandwidth_gb_per_s=50.0, latency_ns=500.0),
        dimension("FullyConnected", 2),
        dimension("Switch", 2, latency_ns=1e9),
    )

    assert deliver(config, [Sent(0, 0, target, MIB)], backend="unaware").times_ns == (arrival_ns,)


@given(config=one_dimensional_networks(), chosen=st.data())
def test_no_message_feels_another(config, chosen):
    """Each of a list of messages comes when it would come alone."""
    messages = chosen.draw(message_lists(config.num_npus))

    together = deliver(config, messages, backend="unaware").times_ns

    alone = [deliver(config, [message], backend="unaware").times_ns[0] for message in messages]
    assert together == tuple(alone)


@given(config=one_dimensional_networks(), chosen=st.data())
def test_the_time_is_the_written_formula_to_the_last_bit(config, chosen):
    """``floor(hops * latency + bytes / (bandwidth * 2**30 / 10**9))``, rounded in this order."""
    (only,) = config.dimensions
    message = chosen.draw(message_lists(config.num_npus))[0]
    around = (message.target - message.source) % only.num_npus
    hops = {"Ring": min(around, only.num_npus - around), "FullyConnected": 1, "Switch": 2}

    (arrival_ns,) = deliver(config, [message], backend="unaware").times_ns

    rate = only.bandwidth_gb_per_s * 2**30 / 10**9
    taken_ns = math.floor(hops[only.topology] * only.latency_ns + message.num_bytes / rate)
    assert arrival_ns == message.start_ns + taken_ns


def test_equal_arrivals_come_in_the_order_of_sending():
    messages = [Sent(0, 2, 3, MIB), Sent(0, 0, 1, MIB), Sent(0, 1, 0, MIB)]

    arrivals = deliver(network(dimension()), messages, backend="unaware")

    assert arrivals.times_ns == (33_906_250,) * 3
    assert arrivals.order == (0, 1, 2)


def test_a_message_under_a_nanosecond_may_not_be_the_first_event():
    config = network(dimension(bandwidth_gb_per_s=1.0, latency_ns=0.0))

    with pytest.raises(AbortError, match="first event must be due after time 0"):
        deliver(config, [Sent(0, 0, 1, 1)], backend="unaware")
    assert deliver(config, [Sent(5, 0, 1, 1)], backend="unaware").times_ns == (5,)


@pytest.mark.parametrize("topology", ["Ring", "FullyConnected", "Switch"])
def test_a_message_to_itself_aborts_with_one_dimension(topology):
    with pytest.raises(AbortError, match="source and target must differ, got NPU 2 twice"):
        deliver(network(dimension(topology)), [Sent(0, 2, 2, MIB)], backend="unaware")


def test_a_message_to_itself_is_a_usage_error_with_several_dimensions():
    config = network(dimension(), dimension())

    with pytest.raises(AstraSimUsageError, match="source and target must differ, got NPU 2 twice"):
        deliver(config, [Sent(0, 2, 2, MIB)], backend="unaware")


@pytest.mark.parametrize("target", [4, 6, 2**32 - 1])
def test_a_target_out_of_range_aborts(target):
    with pytest.raises(AbortError, match=rf"NPU must be within \[0, 4\), got {target}"):
        deliver(network(dimension()), [Sent(0, 1, target, MIB)], backend="unaware")
