"""Law of TCP's start-up and losses: how much later a message arrives than on an ideal link."""

from dataclasses import dataclass
from typing import get_args

from des.base.checks import require_non_negative, require_one_of, require_positive
from des.world.packet_transport import Connections

LEAST_GROWTH = 0.01
"""Growth of windows below which a start-up would have thousands of rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportLaw:
    """Start-up and losses of one transport, in round trips and parts of a link's rate.

    What a message is delayed by follows from its size over the link's bandwidth-delay product, see
    `des.costs.start_up.start_up_s`. Each hop of a route has connections of its own.

    Attributes
    ----------
    connections
        ``fresh``: one for each message, whose start-up does not delay other messages on the link.
        ``reused``: one for each link and direction; its window grows from message to message, and
        later messages wait while an earlier one starts up.
    first_window_bytes
        First congestion window of all flows of a message, over ``growth``. [bytes]
    growth
        Next window as a fraction of all bytes so far, from 0.01 to 1: 1 where each acknowledged
        byte releases two, as in slow start.
    segment_bytes
        Payload of a packet; a round takes as long as one to leave, too. [bytes]
    start_up_round_trips
        Before the first byte of a connection, such as 1 for a handshake.
    is_paced
        Whether a window leaves evenly over its round trip, as with BBR, instead of in a burst.
    efficiency
        Part of a link's rate that payload gets, above 0 and at most 1.
    recovery_round_trips
        Lost by a connection that fills the queue, once.
    recovery_after_products
        Bytes of a connection that fill the queue, over the bandwidth-delay product; None: never.
    """

    connections: Connections
    first_window_bytes: float
    segment_bytes: float
    start_up_round_trips: float = 0.0
    is_paced: bool = False
    growth: float = 1.0
    efficiency: float = 1.0
    recovery_round_trips: float = 0.0
    recovery_after_products: float | None = None

    def __post_init__(self) -> None:
        owner = "corrections.transport"
        require_one_of(owner, "connections", self.connections, get_args(Connections))
        if not isinstance(self.is_paced, bool):
            raise ValueError(f"{owner}: is_paced must be True or False, got {self.is_paced!r}")
        require_positive(owner, "first_window_bytes", self.first_window_bytes)
        require_positive(owner, "segment_bytes", self.segment_bytes)
        for field in ("start_up_round_trips", "recovery_round_trips"):
            require_non_negative(owner, field, getattr(self, field))
        if not LEAST_GROWTH <= self.growth <= 1:
            raise ValueError(
                f"{owner}: growth must be from {LEAST_GROWTH} to 1, got {self.growth!r}"
            )
        if not 0 < self.efficiency <= 1:
            raise ValueError(
                f"{owner}: efficiency must be above 0 and at most 1, got {self.efficiency!r}"
            )
        if self.recovery_after_products is not None:
            require_non_negative(owner, "recovery_after_products", self.recovery_after_products)
