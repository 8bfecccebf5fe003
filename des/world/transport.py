"""Sharing of links and endpoints by messages: the rules of a world's network, the TCP limit."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from des.base.arithmetic import goodput
from des.base.checks import require_count, require_non_negative, require_one_of, require_positive
from des.world.hosts import Hosts
from des.world.packet_transport import LINE_RATE, PacketTransport
from des.world.runtime import IDEAL, Runtime

_SHARING = ("fifo", "fair", "none")
_ENDPOINTS = ("overlapped", "one_in_flight", "blocking")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Rules for sending: who may send when, and a message's part of a link.

    Attributes
    ----------
    sharing
        ``fifo``: a link serves one message after the other, in the order in which they become
        ready. ``fair``: all messages on a link get equal parts of it at any time. ``none``: there
        are no queues; every message has each link, and the wires inside domains, to itself as if
        it were alone, so a later one may overtake. This is ASTRA-sim's congestion-unaware network.
    endpoints
        ``overlapped``: a sender may have any number of messages in flight. ``one_in_flight``: its
        next message leaves when the one before it has arrived at its destination, latencies of all
        hops included; receiving is free, and so is computing. This is what ASTRA-sim does.
        ``blocking``: the worker that made a message does nothing until it has arrived, computing
        included.
    half_duplex
        Whether the two directions of a pair of domains share one medium; not where nothing is
        shared.
    num_endpoint_pairs
        Over how many pairs of GPUs a message is split. The parts share the link and the last one
        arrives when the whole message would, so this counts only where each pair has a limit of
        its own, which is ``window_bytes``.
    flows_per_pair
        TCP connections of each pair. Like the pairs they count only where there is a window.
    window_bytes
        Most that a connection has under way; None means no limit. See `goodput_bytes_per_s`.
    packets
        TCP settings for networks of packets, which the other fields do not apply to, but for
        ``endpoints``. Networks without packets leave them out.
    runtime
        Habits of the program that trains, see `des.world.runtime`.
    hosts
        TCP of the hosts, whose windows remember earlier messages; None: they fill every link. With
        them an iteration is the second of two, so that the first sets the windows.
    """

    sharing: Literal["fifo", "fair", "none"] = "fifo"
    endpoints: Literal["overlapped", "one_in_flight", "blocking"] = "overlapped"
    half_duplex: bool = False
    num_endpoint_pairs: int = 1
    flows_per_pair: int = 1
    window_bytes: float | None = None
    packets: PacketTransport = LINE_RATE
    runtime: Runtime = IDEAL
    hosts: Hosts | None = None

    def __post_init__(self) -> None:
        for field, allowed in (("sharing", _SHARING), ("endpoints", _ENDPOINTS)):
            value = getattr(self, field)
            require_one_of("transport", field, value, allowed)
        if not isinstance(self.half_duplex, bool):
            raise ValueError(
                f"transport: half_duplex must be True or False, got {self.half_duplex!r}"
            )
        if self.half_duplex and self.sharing == "none":
            raise ValueError(
                "transport: half_duplex must be False where sharing is none, as no message meets "
                "another there; got True"
            )
        if self.runtime.rendezvous and self.endpoints != "overlapped":
            raise ValueError(
                "transport: endpoints must be overlapped where the runtime has a rendezvous, got "
                f"{self.endpoints!r}"
            )
        if self.hosts is not None and self.sharing != "fifo":
            raise ValueError(
                f"transport: sharing must be fifo where hosts have windows, got {self.sharing!r}"
            )
        require_count("transport", "num_endpoint_pairs", self.num_endpoint_pairs)
        require_count("transport", "flows_per_pair", self.flows_per_pair)
        if self.window_bytes is not None:
            require_positive("transport", "window_bytes", self.window_bytes)

    def check_domain(self, name: str, num_gpus: int) -> None:
        """Refuse a linked domain that has fewer GPUs than a message has endpoints there."""
        if self.num_endpoint_pairs > num_gpus:
            raise ValueError(
                f"transport: num_endpoint_pairs must be at most the {num_gpus} GPUs of domain "
                f"{name}, got {self.num_endpoint_pairs!r}"
            )

    @property
    def is_immediate(self) -> bool:
        """Whether messages wait for no notices, and hosts have no windows that remember."""
        return not self.runtime.rendezvous and self.hosts is None

    @property
    def message_window_bytes(self) -> float | None:
        """Bytes that all connections of one message may have under way together. [bytes]"""
        if self.window_bytes is None:
            return None
        return self.num_endpoint_pairs * self.flows_per_pair * self.window_bytes


PLAIN = Transport()
"""First come, first served links, endpoints that never wait, no TCP."""


def goodput_bytes_per_s(
    capacity_bytes_per_s: float, round_trip_s: float, window_bytes: float | None
) -> float:
    """Rate at which bytes that have a link to themselves leave, under the TCP window limit.

    Parameters
    ----------
    capacity_bytes_per_s
        Bandwidth of the link; 0 while it is down. [bytes/s]
    round_trip_s
        Latency of the way there and of the acknowledgement's way back. [s]
    window_bytes
        Windows of all connections added up; None means no limit. [bytes]

    Returns
    -------
    float
        ``min(capacity, window / round trip)``. [bytes/s]

    Raises
    ------
    ValueError
        If a figure is negative, infinite or not a number, or the window is 0.

    Notes
    -----
    A sender waits for the acknowledgement of one window before the next, so a connection moves one
    window per round trip, and ``n`` of them ``n`` windows, until the link is full [1]_. Steady
    state without losses; slow start is left out.

    References
    ----------
    .. [1] B. Constantine et al., "Framework for TCP Throughput Testing", RFC 6349, 2011,
       sections 3.3.1 and 4.1.

    Examples
    --------
    64 KiB at a round trip of 80 ms are 6.6 Mbit/s, on however fast a link.

    >>> goodput_bytes_per_s(625e6, 0.08, 65536.0)
    819200.0
    """
    require_non_negative("goodput", "capacity_bytes_per_s", capacity_bytes_per_s)
    require_non_negative("goodput", "round_trip_s", round_trip_s)
    if window_bytes is None:
        return capacity_bytes_per_s
    require_positive("goodput", "window_bytes", window_bytes)
    return goodput(capacity_bytes_per_s, round_trip_s, window_bytes)


def goodputs_bytes_per_s(
    capacity_bytes_per_s: np.ndarray, round_trip_s: np.ndarray, window_bytes: float
) -> np.ndarray:
    """`goodput_bytes_per_s` of many links that were checked before, of one shape. [bytes/s]"""
    rates = capacity_bytes_per_s.copy()
    is_bound = window_bytes < capacity_bytes_per_s * round_trip_s
    rates[is_bound] = window_bytes / round_trip_s[is_bound]
    return rates
