"""TCP settings of the WAN links, for networks of packets: windows, buffers, queues, losses."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from des.base.checks import require_count, require_positive

Congestion = Literal["line_rate_window", "cubic", "bbr"]
Connections = Literal["reused", "fresh"]
Acknowledgements = Literal["first", "in_order"]

LEAST_SEGMENT_BYTES, MOST_SEGMENT_BYTES = 536, 65000
"""The least segment that every host accepts (RFC 9293), and the most whose packet fits 64 KiB."""

FIRST_WINDOW_BYTES = 14600
"""First congestion window of TCP: ten segments of 1460 bytes (RFC 6928). [bytes]"""

MOST_QUEUE_BYTES = 2.0**30
"""Room of a queue that never overflows, such as those of hosts. [bytes]"""

WINDOW_MARGIN = 1.3
"""Window of ``line_rate_window`` over the bandwidth-delay product: links of +30 % stay full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketTransport:
    """TCP settings of a world's messages, for networks of packets.

    Attributes
    ----------
    congestion
        ``line_rate_window``: a window of `WINDOW_MARGIN` bandwidth-delay products from the first
        packet on, comparable with networks without packets. ``cubic``, ``bbr``: TCP's own.
    connections
        ``reused``: one connection for each ordered pair of domains and flow; its messages follow
        one another. ``fresh``: a new one for each message, handshake and slow start included.
    flows
        Connections over which a message is split in equal parts.
    segment_bytes
        Payload of a packet. [bytes]
    first_segments
        First congestion window in segments; None: the whole window of ``line_rate_window``, else
        that of RFC 6928.
    buffer_bytes
        Socket buffers of sender and receiver; None: as large as the window of
        ``line_rate_window``, else four bandwidth-delay products. [bytes]
    queue_bytes
        Room of the queue before each link; None: by ``queue_products``. [bytes]
    queue_products
        The same in bandwidth-delay products of each link; None without ``queue_bytes``: never full
        with ``line_rate_window``, else one.
    loss_fraction
        Packets lost at random at each end of a link, at least 0 and below 1.
    acknowledgements
        ``first``: they leave before the data that waits for a link, so messages of one direction do
        not slow down those of the other. ``in_order``: they wait behind it. None: ``first`` with
        ``line_rate_window``, as networks without packets have no acknowledgements, else
        ``in_order``.
    """

    congestion: Congestion = "line_rate_window"
    connections: Connections = "reused"
    flows: int = 1
    segment_bytes: int = MOST_SEGMENT_BYTES
    first_segments: int | None = None
    buffer_bytes: float | None = None
    queue_bytes: float | None = None
    queue_products: float | None = None
    loss_fraction: float = 0.0
    acknowledgements: Acknowledgements | None = None

    def __post_init__(self) -> None:
        for field, kind, is_optional in (
            ("congestion", Congestion, False),
            ("connections", Connections, False),
            ("acknowledgements", Acknowledgements, True),
        ):
            allowed, value = get_args(kind), getattr(self, field)
            if value not in allowed and not (is_optional and value is None):
                raise ValueError(
                    f"transport.packets: {field} must be one of {', '.join(allowed)}; got {value!r}"
                )
        require_count("transport.packets", "flows", self.flows)
        require_count("transport.packets", "segment_bytes", self.segment_bytes)
        if self.first_segments is not None:
            require_count("transport.packets", "first_segments", self.first_segments)
        if not LEAST_SEGMENT_BYTES <= self.segment_bytes <= MOST_SEGMENT_BYTES:
            raise ValueError(
                f"transport.packets: segment_bytes must be from {LEAST_SEGMENT_BYTES} to "
                f"{MOST_SEGMENT_BYTES}, got {self.segment_bytes!r}"
            )
        for field in ("buffer_bytes", "queue_bytes"):
            size = getattr(self, field)
            if size is not None and not self.segment_bytes <= size <= MOST_QUEUE_BYTES:
                raise ValueError(
                    f"transport.packets: {field} must hold at least one segment of "
                    f"{self.segment_bytes} bytes and at most {MOST_QUEUE_BYTES:.0f}, got {size!r}"
                )
        if self.queue_products is not None:
            require_positive("transport.packets", "queue_products", self.queue_products)
            if self.queue_bytes is not None:
                raise ValueError(
                    "transport.packets: only one of queue_bytes and queue_products may be given, "
                    f"got {self.queue_bytes!r} and {self.queue_products!r}"
                )
        if not 0 <= self.loss_fraction < 1:
            raise ValueError(
                "transport.packets: loss_fraction must be at least 0 and below 1, "
                f"got {self.loss_fraction!r}"
            )

    def first_window_segments(self, window_bytes: float) -> int:
        """First congestion window of a connection that may have a window under way. [segments]"""
        if self.first_segments is not None:
            return self.first_segments
        if self.congestion == "line_rate_window":
            return max(1, int(window_bytes / self.segment_bytes))
        return math.ceil(FIRST_WINDOW_BYTES / self.segment_bytes)

    @property
    def acknowledges_first(self) -> bool:
        """Whether acknowledgements are sent before data that waits for the same link."""
        if self.acknowledgements is None:
            return self.congestion == "line_rate_window"
        return self.acknowledgements == "first"

    @property
    def acknowledged_segments(self) -> int:
        """Segments that one acknowledgement waits for: 2, or 1 where they are of jumbo size."""
        return 1 if self.segment_bytes > FIRST_WINDOW_BYTES else 2

    def window_bytes(self, product_bytes: float) -> float:
        """Socket buffers of a connection whose path has a bandwidth-delay product. [bytes]"""
        if self.buffer_bytes is not None:
            return self.buffer_bytes
        margin = WINDOW_MARGIN if self.congestion == "line_rate_window" else 4.0
        least = 2.0 if self.congestion == "line_rate_window" else 64.0
        return max(margin * product_bytes, least * self.segment_bytes)

    def room_bytes(self, product_bytes: float) -> float:
        """Room of the queue before a link with a bandwidth-delay product. [bytes]"""
        if self.queue_bytes is not None:
            return self.queue_bytes
        if self.queue_products is None and self.congestion == "line_rate_window":
            return MOST_QUEUE_BYTES
        room_bytes = product_bytes * (self.queue_products or 1.0)
        return min(max(room_bytes, 10.0 * self.segment_bytes), MOST_QUEUE_BYTES)


LINE_RATE = PacketTransport()
"""Open connections whose windows fill their links: what networks without packets assume."""
