"""TCP of the hosts: how far a connection's window opens, and what idle times leave of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from des.base.checks import require_one_of, require_positive

BUFFER_SHARE = 0.625
"""Part of a send buffer that holds data under way; Linux keeps its own records in the rest. Of
4 MB 2.5 MB were measured: 250 Mbit/s at a round trip of 80 ms.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Settings of the hosts at both ends of every link.

    Attributes
    ----------
    send_buffer_bytes
        Largest send buffer of a connection, the last figure of ``net.ipv4.tcp_wmem``. [bytes]
    restart_after_idle
        ``net.ipv4.tcp_slow_start_after_idle``: whether the congestion window halves for each
        retransmission timeout that a connection is idle.
    """

    send_buffer_bytes: float
    restart_after_idle: bool

    def __post_init__(self) -> None:
        require_positive("transport.runtime", "send_buffer_bytes", self.send_buffer_bytes)
        if not isinstance(self.restart_after_idle, bool):
            raise ValueError(
                "transport.runtime: restart_after_idle must be True or False, got "
                f"{self.restart_after_idle!r}"
            )


HOSTS: Mapping[str, Hosts] = MappingProxyType(
    {
        "linux_default": Hosts(send_buffer_bytes=4e6, restart_after_idle=True),
        "linux_tuned": Hosts(send_buffer_bytes=64e6, restart_after_idle=False),
    }
)
"""Hosts by name: Linux as it comes, and set for long links."""


def hosts_named(name: str) -> Hosts:
    """Return hosts of the table.

    Raises
    ------
    ValueError
        If there are none of that name.
    """
    require_one_of("transport.runtime", "hosts", name, HOSTS)
    return HOSTS[name]
