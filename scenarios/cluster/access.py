"""Access to a scheduler, which launches commands: loopback as it is, elsewhere TLS and a token."""

import ipaddress
import stat
from dataclasses import dataclass
from pathlib import Path

from des.base.command import UsageError
from des.base.flags import JsonFlag, option
from des.base.text_files import read_text

_FEWEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFlags(JsonFlag):
    """Settings by which nodes and commands reach the scheduler; they inherit the flags."""

    ipaddr: str = option("127.0.0.1", "address of the scheduler")
    port: int = option(50051, "port of the scheduler")
    token_file: Path | None = option(
        None, "file with the token of the cluster, readable by its owner alone", is_file=True
    )
    tls_ca: Path | None = option(
        None, "certificates that sign that of the scheduler, PEM; turns TLS on", is_file=True
    )


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


def require_safe_address(
    host: str, flag: str, *, has_tls: bool, has_token: bool, tls_flag: str
) -> None:
    """Refuse to go beyond this machine without TLS and a token.

    Raises
    ------
    UsageError
        If one of them is missing.
    """
    if is_loopback(host) or (has_tls and has_token):
        return
    needed = {tls_flag: has_tls, "--token-file": has_token}
    missing = " and ".join(name for name, is_given in needed.items() if not is_given)
    raise UsageError(
        f"{flag} {host}: must be a loopback address without TLS and a token, since the scheduler "
        f"launches commands; give {missing}"
    )


def require_port(port: int, least: int = 1) -> None:
    """Refuse what is no port.

    Raises
    ------
    UsageError
        If it is out of range.
    """
    if not least <= port <= 65535:
        raise UsageError(f"--port must be from {least} to 65535, got {port}")


def token_of(path: Path | None) -> str:
    """Token in a file; empty without one.

    Raises
    ------
    ValueError
        If the file cannot be read, may be read by others, or the token is short or not printable.
    """
    if path is None:
        return ""
    token = read_text(path, "token ").strip()
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(f"{path}: must be of mode 0600, so that others cannot read the token")
    if len(token) < _FEWEST_CHARACTERS or not token.isascii() or not token.isprintable():
        raise ValueError(
            f"{path}: the token must be at least {_FEWEST_CHARACTERS} printable ASCII characters, "
            f"got {len(token)}"
        )
    return token
