"""Limits of a domain's way to the WAN: uplink and downlink, caps of a flow and of a host."""

from dataclasses import dataclass

from des.base.checks import require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Rates at which a domain reaches other sites; None means no limit. [bytes/s]

    Attributes
    ----------
    uplink_bytes_per_s, downlink_bytes_per_s
        Of all messages that leave the domain's site, or come to it, at a time.
    flow_cap_bytes_per_s
        Of one TCP connection to or from another site.
    host_cap_bytes_per_s
        Of all that one of the domain's hosts (`Domain.num_nodes`) sends to other sites.
    """

    uplink_bytes_per_s: float | None = None
    downlink_bytes_per_s: float | None = None
    flow_cap_bytes_per_s: float | None = None
    host_cap_bytes_per_s: float | None = None

    def check(self, owner: str) -> None:
        """Refuse rates that are not positive, naming the owner."""
        for field in self.__slots__:
            value = getattr(self, field)
            if value is not None:
                require_positive(owner, field, value)


OPEN = Access()
"""No limit but those of the links."""
