"""Messages over a network of the ASTRA-sim engine with no ranks around them."""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from astra_sim.core.events import EventQueue
from astra_sim.files.network_config import (
    AnyDimension,
    BandwidthChange,
    Dimension,
    NetworkConfig,
    PairwiseDimension,
)
from astra_sim.network import Backend, make_network

BYTE_PER_NS = 10**9 / 2**30
"""A bandwidth in GB/s that is 1 byte/ns to the last bit."""


class Sent(NamedTuple):
    """A message that is posted at a time."""

    start_ns: int
    source: int
    target: int
    num_bytes: int


class Arrivals(NamedTuple):
    """When each message came, in the order given, and the order in which they came."""

    times_ns: tuple[int, ...]
    order: tuple[int, ...]


def dimension(
    topology: str = "FullyConnected",
    num_npus: int = 4,
    bandwidth_gb_per_s: float = 0.25,
    latency_ns: float = 30e6,
) -> Dimension:
    """One dimension, with the figures of a WAN by default."""
    return Dimension(
        topology=topology,
        num_npus=num_npus,
        bandwidth_gb_per_s=bandwidth_gb_per_s,
        latency_ns=latency_ns,
    )


def nearby(num_npus: int, topology: str = "FullyConnected") -> Dimension:
    """Links of 1 byte/ns and no latency, for arithmetic by hand."""
    return dimension(topology, num_npus, BYTE_PER_NS, 0.0)


def each_pair(
    bandwidths: Sequence[Sequence[float]], latencies: Sequence[Sequence[float]]
) -> PairwiseDimension:
    """Links of these figures, in multiples of 1 byte/ns and in ns; rows are sources."""
    return PairwiseDimension(
        bandwidth_matrix_gb_per_s=tuple(
            tuple(each * BYTE_PER_NS for each in row) for row in bandwidths
        ),
        latency_matrix_ns=tuple(map(tuple, latencies)),
    )


def change(
    time_ns: int, bytes_per_ns: float, link: tuple[int, int] | None = None, *, dimension: int = 0
) -> BandwidthChange:
    """Another rate from a time on, for one link or for all of a dimension."""
    source, target = link or (None, None)
    return BandwidthChange(
        time_ns=time_ns,
        dimension=dimension,
        source=source,
        target=target,
        bandwidth_gb_per_s=bytes_per_ns * BYTE_PER_NS,
    )


def network(*dimensions: AnyDimension, changes: Sequence[BandwidthChange] = ()) -> NetworkConfig:
    """Network of these dimensions, 0 first."""
    return NetworkConfig(dimensions=dimensions, bandwidth_changes=tuple(changes))


def deliver(
    config: NetworkConfig,
    messages: Sequence[Sent],
    *,
    backend: Backend,
    multi_dimensional: bool = False,
) -> Arrivals:
    """Post messages at their times, those of the same time in the order given."""
    queue = EventQueue()
    carrier = make_network(config, queue, backend=backend, multi_dimensional=multi_dimensional)
    times_ns: dict[int, int] = {}

    def arrive(index: int) -> None:
        assert index not in times_ns
        times_ns[index] = queue.now

    def post(index: int) -> None:
        _, source, target, num_bytes = messages[index]
        carrier.send(source, target, num_bytes, (arrive, index))

    for index, message in enumerate(messages):
        if message.start_ns == 0:
            post(index)
        else:
            queue.at(message.start_ns, post, index)
    queue.run()
    return Arrivals(tuple(times_ns[index] for index in range(len(messages))), tuple(times_ns))


def rates_gb_per_s() -> st.SearchStrategy[float]:
    """Bandwidths from a slow WAN link to a fast bus."""
    return st.floats(0.01, 1000.0)


def one_dimensional_networks() -> st.SearchStrategy[NetworkConfig]:
    """Networks that both backends take, of latencies that are whole nanoseconds."""
    return st.builds(
        lambda *figures: network(dimension(*figures)),
        st.sampled_from(["Ring", "FullyConnected", "Switch"]),
        st.integers(3, 7),
        rates_gb_per_s(),
        st.integers(0, 10**6).map(float),
    )


def message_lists(
    num_npus: int, *, min_bytes: int = 2000, max_start_ns: int = 10**4
) -> st.SearchStrategy[list[Sent]]:
    """Messages between different NPUs, each of at least 1 ns on the fastest link."""

    def sent(start_ns: int, source: int, steps: int, num_bytes: int) -> Sent:
        return Sent(start_ns, source, (source + steps) % num_npus, num_bytes)

    return st.lists(
        st.builds(
            sent,
            st.integers(0, max_start_ns),
            st.integers(0, num_npus - 1),
            st.integers(1, num_npus - 1),
            st.integers(min_bytes, 10**6),
        ),
        min_size=1,
        max_size=20,
    )
