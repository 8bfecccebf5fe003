"""Sites of hosts: a file of patterns of names, addresses and subnets."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from des.base.checks import prefixed_errors
from des.base.text_files import read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """Patterns by site; without any, every host is a site of its own name.

    A pattern is a subnet (``10.1.0.0/16``), an address, or a host name with ``*`` and ``?``.
    The name of a site is a pattern of it, too.

    Examples
    --------
    >>> sites = Sites(patterns={"Frankfurt": ("10.1.0.0/16", "fra-*")})
    >>> sites.of("10.1.7.9"), sites.of("fra-12:9100"), sites.of("10.2.0.1")
    ('Frankfurt', 'Frankfurt', None)
    """

    patterns: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        for site, patterns in self.patterns.items():
            if not site.strip():
                raise ValueError("sites: a name must not be empty")
            for pattern in patterns:
                if not pattern.strip():
                    raise ValueError(f"sites: {site}: a pattern must not be empty")
                if "/" in pattern:
                    _subnet(site, pattern)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sites, in the order of the file."""
        return tuple(self.patterns)

    def of(self, host: str) -> str | None:
        """Site of a host name or address, with or without a port; None if no pattern fits.

        Raises
        ------
        ValueError
            If patterns of two sites fit.
        """
        if not self.patterns:
            return host or None
        address = _address_of(host)
        name = host.rpartition(":")[0] if host.count(":") == 1 else host
        found = [
            site
            for site, patterns in self.patterns.items()
            if any(_fits(site, one, name, address) for one in (site, *patterns))
        ]
        if len(found) > 1:
            raise ValueError(f"sites: {host} must be of one site, got {' and '.join(found)}")
        return found[0] if found else None

    def named_by(self, path: Path) -> tuple[str, ...]:
        """Sites that the name of a file or its folder spells, in their order there."""
        text = f"{path.parent.name}/{path.stem}"
        for sign in "/_+= ":
            text = text.replace(sign, " ")
        words = [word for part in text.split() for word in (part, *part.split("--"))]
        found = (self.of(word) for word in words) if self.patterns else iter(())
        return tuple(dict.fromkeys(site for site in found if site is not None))


def read_sites(path: Path) -> Sites:
    """Read a YAML file of sites: each a list of patterns, or one.

    Raises
    ------
    ValueError
        If the file is no such mapping, naming the file, the site, what is allowed and what came.
    """
    content = read_yaml(path)
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{path}: must map sites to patterns of their hosts, got {content!r}")
    patterns: dict[str, tuple[str, ...]] = {}
    for site, listed in content.items():
        many = [listed] if isinstance(listed, str) else listed
        if not isinstance(site, str):
            raise ValueError(f"{path}: a site must be a text, got {site!r}")
        if not isinstance(many, list) or not all(isinstance(one, str) for one in many):
            raise ValueError(
                f"{path}: {site}: must be a list of host names, addresses or subnets, "
                f"got {listed!r}"
            )
        patterns[site] = tuple(many)
    with prefixed_errors(f"{path}: "):
        return Sites(patterns=patterns)


def _subnet(site: str, pattern: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    with prefixed_errors(f"sites: {site}: no subnet, {pattern!r}: "):
        return ipaddress.ip_network(pattern, strict=False)


def _address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    bare = host.rpartition(":")[0] if host.count(":") == 1 else host.strip("[]")
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None


def _fits(
    site: str,
    pattern: str,
    name: str,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None,
) -> bool:
    if "/" in pattern:
        return address is not None and address in _subnet(site, pattern)
    return fnmatchcase(name.casefold(), pattern.casefold())
