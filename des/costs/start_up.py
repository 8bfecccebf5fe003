"""TCP's start-up and losses as delays of messages: in closed form, and as engines add them."""

import math
from typing import NamedTuple

from des.base.checks import require_non_negative, require_positive
from des.base.scalar import scalar
from des.plan.transport_law import TransportLaw


def fresh_connection_s(
    num_bytes: float,
    *,
    bandwidth_bytes_per_s: float,
    latency_s: float,
    first_window_bytes: float,
) -> float:
    """Time of a message over a fresh TCP connection that loses nothing. [s]

    Parameters
    ----------
    num_bytes
        Payload. [bytes]
    bandwidth_bytes_per_s
        Rate of the slowest link, or the window over the round trip where that is less. [bytes/s]
    latency_s
        One way. [s]
    first_window_bytes
        First congestion window. [bytes]

    Raises
    ------
    ValueError
        If a figure is negative, infinite or not a number, or a rate or window is 0.

    Notes
    -----
    ``d + RTT (1 + log2(min(S, BDP) / IW + 1)) + max(0, S - BDP) / B``: a handshake, rounds in which
    the window doubles [1]_ until it fills the link, then the rate of the link. ``RTT = 2 d``,
    ``BDP = B RTT``.

    References
    ----------
    .. [1] M. Allman, V. Paxson, E. Blanton, "TCP Congestion Control", RFC 5681, 2009, section 3.1.

    Examples
    --------
    1 MB over 5 Gbit/s and 30 ms; ns-3 takes 0.3307 s.

    >>> round(fresh_connection_s(1e6, bandwidth_bytes_per_s=625e6, latency_s=0.03,
    ...                          first_window_bytes=65000.0), 4)
    0.3321
    """
    owner = "fresh connection"
    require_non_negative(owner, "num_bytes", num_bytes)
    require_positive(owner, "bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    require_non_negative(owner, "latency_s", latency_s)
    require_positive(owner, "first_window_bytes", first_window_bytes)
    round_trip_s = 2.0 * latency_s
    product_bytes = bandwidth_bytes_per_s * round_trip_s
    rounds = 1.0 + math.log2(min(num_bytes, product_bytes) / first_window_bytes + 1.0)
    rest_s = max(0.0, num_bytes - product_bytes) / bandwidth_bytes_per_s
    return latency_s + round_trip_s * rounds + rest_s


class StartUp(NamedTuple):
    """Figures of a law on one link, which do not change while a simulation runs.

    ``opening_s`` is lost before the first byte of a connection, ``round_s`` is the time between
    two windows, ``rate_bytes_per_s`` that of a message alone at base figures.
    """

    is_reused: bool
    is_paced: bool
    first_window_bytes: float
    growth: float
    opening_s: float
    round_s: float
    rate_bytes_per_s: float
    slowdown_s_per_byte: float
    recovery_s: float
    recovery_after_bytes: float


def start_up_on(law: TransportLaw, rate_bytes_per_s: float, round_trip_s: float) -> StartUp:
    """Work out the figures of a law on a link of a rate (above 0) and a round trip."""
    product_bytes, filled = rate_bytes_per_s * round_trip_s, law.recovery_after_products
    return StartUp(
        is_reused=law.connections == "reused",
        is_paced=law.is_paced,
        first_window_bytes=law.first_window_bytes,
        growth=law.growth,
        opening_s=law.start_up_round_trips * round_trip_s,
        round_s=round_trip_s + law.segment_bytes / rate_bytes_per_s,
        rate_bytes_per_s=rate_bytes_per_s,
        slowdown_s_per_byte=(1.0 / law.efficiency - 1.0) / rate_bytes_per_s,
        recovery_s=law.recovery_round_trips * round_trip_s,
        recovery_after_bytes=math.inf if filled is None else filled * product_bytes,
    )


@scalar
def rested_bytes(start_up: StartUp, began_bytes: float, known_bytes: float) -> float:
    """Byte count that stands for a reused connection's window after an idle round. [bytes]

    Parameters
    ----------
    start_up
        Anything with the fields of `StartUp`.
    began_bytes, known_bytes
        Byte counts before and after the latest bytes sent without an idle round in between.

    Notes
    -----
    A window grows by acknowledgements that release further data. The last bytes release none, so
    the window stays that of the last full round: the next window over ``1 + growth``, and at least
    the window before [1]_.

    References
    ----------
    .. [1] G. Fairhurst, A. Sathiaseelan, R. Secchi, "Updating TCP to support rate-limited traffic",
       RFC 7661, 2015.

    Examples
    --------
    Windows of 1, 2 and 4 bytes have left: the next would have had 8, after a rest there are 4.

    >>> from des.plan.transport_law import TransportLaw
    >>> law = TransportLaw(connections="reused", first_window_bytes=1.0, segment_bytes=1e-9)
    >>> 1.0 + rested_bytes(start_up_on(law, 8.0, 1.0), 0.0, 7.0)
    4.0
    """
    first_bytes = start_up.first_window_bytes
    last_bytes = (first_bytes + known_bytes) / (1.0 + start_up.growth) - first_bytes
    return max(began_bytes, last_bytes, 1.0)  # 0 is a connection that is not open yet


@scalar
def start_up_s(start_up: StartUp, before_bytes: float, num_bytes: float) -> float:
    """Delay of a message against ``latency + bytes / rate``. [s]

    Parameters
    ----------
    start_up
        Anything with the fields of `StartUp`.
    before_bytes
        Bytes that the link has carried for this job before, less those that `rested_bytes` takes
        away; they count for reused connections.

    Notes
    -----
    In slow start a window leaves, then the link is idle until its first acknowledgement has come
    back and lets ``1 + growth`` as much leave: twice where every acknowledged byte lets one more
    leave. So each round costs a round trip, less the time that its window takes to leave, until
    windows fill the link. Paced windows spread that over the round.

    Examples
    --------
    Windows of 1, 2 and 4 bytes, of which 7 are sent, at 8 bytes/s and 1 s; the fourth round would
    fill the link.

    >>> from des.plan.transport_law import TransportLaw
    >>> law = TransportLaw(connections="fresh", first_window_bytes=1.0, segment_bytes=1e-9,
    ...                    start_up_round_trips=1.0)
    >>> figures = start_up_on(law, 8.0, 1.0)
    >>> round(start_up_s(figures, 0.0, 7.0), 6)  # 1 + 7/8 + 6/8
    2.625
    >>> round(start_up_s(figures, 0.0, 8.0), 6) == round(start_up_s(figures, 0.0, 800.0), 6)
    True
    """
    known_bytes = before_bytes if start_up.is_reused else 0.0
    delay_s = num_bytes * start_up.slowdown_s_per_byte
    if known_bytes == 0.0:
        delay_s += start_up.opening_s
    window_bytes = start_up.growth * (start_up.first_window_bytes + known_bytes)
    left_bytes = num_bytes
    idle_s = start_up.round_s - window_bytes / start_up.rate_bytes_per_s
    while idle_s > 0.0 and left_bytes > window_bytes:
        delay_s += idle_s
        left_bytes -= window_bytes
        window_bytes += start_up.growth * window_bytes
        idle_s = start_up.round_s - window_bytes / start_up.rate_bytes_per_s
    if start_up.is_paced and idle_s > 0.0:
        delay_s += left_bytes / window_bytes * idle_s
    if known_bytes < start_up.recovery_after_bytes <= known_bytes + num_bytes:
        delay_s += start_up.recovery_s
    return delay_s
