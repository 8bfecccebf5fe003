"""Windows of a TCP connection from message to message: slow start, idle times, send buffers."""

import math
from typing import NamedTuple

from des.base.scalar import scalar
from des.world.hosts import BUFFER_SHARE, Hosts

FIRST_WINDOW_BYTES = 10 * 1448.0
"""Least congestion window after an idle time: ten segments (RFC 6928). [bytes]"""

LEAST_TIMEOUT_S = 0.2
"""Retransmission timeout of Linux over the round trip, at least. [s]"""

KEPT_OF_WINDOW = 0.7
"""Part of a congestion window that CUBIC keeps when a queue overflows (RFC 9438, section 4.6)."""

QUEUE_PRODUCTS = 1.0
"""Queue before a link, in bandwidth-delay products, as a rule for routers has it."""


class WindowFigures(NamedTuple):
    """Figures of a connection on one link, which do not change while a simulation runs.

    ``timeout_s`` is the idle time that halves the window, ``most_bytes`` what it grows to.
    """

    rate_bytes_per_s: float
    round_trip_s: float
    buffer_bytes: float
    most_bytes: float
    timeout_s: float


def window_figures(hosts: Hosts, rate_bytes_per_s: float, round_trip_s: float) -> WindowFigures:
    """Work out the figures of hosts on a link of a rate (above 0) and a round trip.

    A window grows until a queue overflows, or to twice of what the buffer lets under way.
    """
    buffer_bytes = BUFFER_SHARE * hosts.send_buffer_bytes
    product_bytes = rate_bytes_per_s * round_trip_s
    overflow_bytes = KEPT_OF_WINDOW * (1.0 + QUEUE_PRODUCTS) * product_bytes
    return WindowFigures(
        rate_bytes_per_s=rate_bytes_per_s,
        round_trip_s=round_trip_s,
        buffer_bytes=buffer_bytes,
        most_bytes=max(FIRST_WINDOW_BYTES, min(overflow_bytes, 2.0 * buffer_bytes)),
        timeout_s=LEAST_TIMEOUT_S + round_trip_s if hosts.restart_after_idle else math.inf,
    )


@scalar
def window_after_idle(figures: WindowFigures, window_bytes: float, idle_s: float) -> float:
    """Congestion window after an idle time: halved for each timeout in it [1]_. [bytes]

    References
    ----------
    .. [1] Linux, net/ipv4/tcp_output.c, ``tcp_cwnd_restart``; RFC 2861.

    Examples
    --------
    >>> hosts = Hosts(send_buffer_bytes=4e6, restart_after_idle=True)
    >>> window_after_idle(window_figures(hosts, 1e8, 0.1), 4e6, 0.7)
    1000000.0
    """
    left_s = idle_s
    while left_s > figures.timeout_s and window_bytes > FIRST_WINDOW_BYTES:
        window_bytes = max(FIRST_WINDOW_BYTES, window_bytes / 2.0)
        left_s -= figures.timeout_s
    return window_bytes


@scalar
def windowed_delay_s(
    figures: WindowFigures,
    memory: tuple[float, float, float],
    start_s: float,
    num_bytes: float,
) -> tuple[float, tuple[float, float, float]]:
    """Delay of a message's last byte against the rate of the link [s], and the memory behind it.

    Parameters
    ----------
    figures
        Anything with the fields of `WindowFigures`.
    memory
        Congestion window, start of the present round, bytes sent in it.

    Notes
    -----
    In each round trip at most a window leaves, at the rate of the link, and no more than the send
    buffer holds. A round whose window was used up doubles the next one (slow start). Windows of a
    bandwidth-delay product keep the link busy.

    Examples
    --------
    Windows of 1 and 2 MB on a link that holds 10: 3 MB wait for one round trip of 0.1 s, of which
    the first window takes 0.01 s.

    >>> hosts = Hosts(send_buffer_bytes=64e6, restart_after_idle=False)
    >>> figures = window_figures(hosts, 1e8, 0.1)
    >>> delay_s, memory = windowed_delay_s(figures, (1e6, -1.0, 0.0), 0.0, 3e6)
    >>> round(delay_s, 6), memory
    (0.09, (2000000.0, 0.1, 2000000.0))
    """
    window_bytes, round_start_s, used_bytes = memory
    rate, round_s = figures.rate_bytes_per_s, figures.round_trip_s
    now_s, left_bytes = start_s, num_bytes
    open_bytes = min(window_bytes, figures.buffer_bytes)
    while open_bytes < rate * round_s:
        if now_s >= round_start_s + round_s:
            round_start_s, used_bytes = now_s, 0.0
        room_bytes = max(0.0, open_bytes - used_bytes)
        if left_bytes <= room_bytes:
            break
        left_bytes -= room_bytes
        now_s = max(now_s + room_bytes / rate, round_start_s + round_s)
        window_bytes = max(window_bytes, min(2.0 * window_bytes, figures.most_bytes))
        round_start_s, used_bytes = now_s, 0.0
        open_bytes = min(window_bytes, figures.buffer_bytes)
    delay_s = (now_s - start_s) - (num_bytes - left_bytes) / rate
    return max(0.0, delay_s), (window_bytes, round_start_s, used_bytes + left_bytes)
