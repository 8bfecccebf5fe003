"""Requests that a browser sends on behalf of a foreign page, known by what the page cannot choose.

A page can name any address in its own zone and let it point at this machine (DNS rebinding): then
``Host`` is that name. It can post a form without being allowed to: then ``Origin`` is the page's,
and ``Content-Type`` one of three that are not JSON. Source: WHATWG, "Fetch", sections 2.2.2 and 3.
"""

import ipaddress
import re
from collections.abc import Mapping

MOST_BODY_BYTES = 4 * 2**20
"""Largest body that a server of ours takes. [bytes]"""

_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::\d{1,5})?", re.ASCII)
_OWN_NAME = re.compile(r"localhost|(?:[a-z0-9-]+\.)+svc", re.IGNORECASE)
"""Names of no zone of the internet: of this machine, and of services of Kubernetes."""


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def foreign_request(
    method: str, headers: Mapping[str, str], *, has_certificate: bool
) -> tuple[int, str] | None:
    """Status and reason with which a request is refused; None for one of our own clients.

    Parameters
    ----------
    headers
        Headers by their names in lower case.
    has_certificate
        Whether the server shows a certificate: names that it is not for do not get this far.

    Examples
    --------
    >>> foreign_request("GET", {"host": "evil.example:8050"}, has_certificate=False)[0]
    421
    >>> foreign_request("GET", {"host": "127.0.0.1:8050"}, has_certificate=False)
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if not (has_certificate or _is_own(host)):
        return 421, "Host must be an address, localhost or a name of a service"
    if origin is not None and origin.partition("://")[2] != host:
        return 403, "Origin must be the page of this server, or not be there"
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method not in ("GET", "HEAD") and kind != "application/json":
        return 415, "Content-Type must be application/json"
    return None


def _is_own(host: str) -> bool:
    found = _AUTHORITY.fullmatch(host)
    if found is None:
        return False
    try:
        ipaddress.ip_address(found[1] or found[2])
    except ValueError:
        return _OWN_NAME.fullmatch(found[2] or "") is not None
    return True
