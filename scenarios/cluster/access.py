"""Access to a scheduler, which launches commands: both sides prove themselves.

On this machine by a socket in a folder that no other user can enter, or put another in the place
of. Beyond it by TLS and a token, which is sent to the owner of the certificate alone.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from des.base.command import UsageError
from des.base.flags import JsonFlag, option
from des.base.private_folder import open_private, user_cache_folder
from des.base.text_files import read_text

_MOST_SOCKET_BYTES = 107
_FEWEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFlags(JsonFlag):
    """Settings by which nodes and commands reach the scheduler; they inherit the flags."""

    socket: Path | None = option(
        None,
        "socket of the scheduler, in a folder of mode 0700 of this user",
        default_text="cluster.sock in the user's caches",
    )
    ipaddr: str = option(
        "", "address of a scheduler on another machine", default_text="--socket of this one"
    )
    port: int = option(50051, "port of the scheduler at --ipaddr")
    token_file: Path | None = option(
        None, "file with the token of the cluster, readable by its owner alone", is_file=True
    )
    tls_ca: Path | None = option(
        None, "certificates that sign that of the scheduler, PEM; turns TLS on", is_file=True
    )


def own_socket(path: Path | None) -> Path:
    """Path of a socket on this machine, which no other user can have made.

    Raises
    ------
    ValueError
        If others may enter its folder, or move it or one above it.
    """
    if path is None:
        cache = user_cache_folder()
        if cache is None:
            raise ValueError("--socket: must be given where this user has no folder of caches")
        path = cache / "cluster.sock"
    folder = path.absolute().parent.resolve(strict=True)
    found = folder / path.name
    if len(os.fsencode(found)) > _MOST_SOCKET_BYTES:
        raise ValueError(f"--socket {found}: must be at most {_MOST_SOCKET_BYTES} bytes")
    if folder.stat().st_uid != os.geteuid() or folder.stat().st_mode & 0o077:
        raise ValueError(f"--socket {found}: must be in a folder of this user, of mode 0700")
    for above in folder.parents:
        row = above.stat()
        is_shared = row.st_mode & 0o022 and not row.st_mode & stat.S_ISVTX
        if is_shared or row.st_uid not in (0, os.geteuid()):
            raise ValueError(f"--socket {found}: others can move what is in {above}")
    return found


@contextmanager
def hold_socket(path: Path | None) -> Iterator[Path]:
    """Keep other schedulers off a socket for a block: gRPC would take the place of one.

    Raises
    ------
    ValueError
        If another scheduler listens there, or `own_socket` does not take it.
    """
    found = own_socket(path)
    with open(f"{found}.lock", "ab", opener=open_private) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(f"--socket {found}: another scheduler listens there") from error
        yield found


def require_proof(host: str, flag: str, *, has_tls: bool, has_token: bool, tls_flag: str) -> None:
    """Refuse an address without TLS and a token, and TLS without an address.

    Raises
    ------
    UsageError
        If one of them is missing.
    """
    needed = {tls_flag: has_tls, "--token-file": has_token}
    missing = " and ".join(name for name, is_given in needed.items() if not is_given)
    if host and missing:
        raise UsageError(
            f"{flag} {host}: must have TLS and a token, since the scheduler launches commands; "
            f"give {missing}"
        )
    if has_tls and not host:
        raise UsageError(f"{tls_flag} needs {flag}")


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
