"""The lock of a run folder: one process at a time; a process that has ended, however, frees it."""

import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from des.base.checks import system_errors

LOCK = ".lock"
"""Name of the lock file; it holds the number and the host of the process, and goes with it."""

_ATTEMPTS, _PAUSE_S = 100, 0.01
"""A process that has just taken the lock needs an instant until the file has its number."""


class RunFolderInUseError(ValueError):
    """Another process holds the lock of the run folder."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that exists.

    The system frees the lock of a process that has ended, by SIGKILL too: a file that such a
    process has left is no obstacle. On a disk that several machines share the lock holds for all
    of them, as far as their file system passes ``flock`` on.

    Raises
    ------
    RunFolderInUseError
        If another process holds it, naming the folder and the process.
    ValueError
        If the folder cannot be locked.
    """
    path = folder / LOCK
    with system_errors(f"run folder {folder}: cannot be locked"):
        descriptor = _taken(path, folder)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is ours; a waiting process sees that it is gone
        os.close(descriptor)


def _taken(path: Path, folder: Path) -> int:
    """Descriptor of the lock file, locked and with our number in it."""
    holder = ""
    for _ in range(_ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
            os.close(descriptor)
            if _is_alive(holder):
                break
            time.sleep(_PAUSE_S)  # the number in the file is not the holder's yet
            continue
        except BaseException:
            os.close(descriptor)
            raise
        if _is_same(descriptor, path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {platform.node()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)  # its holder has just ended and taken the file away
    number, _, host = holder.partition(" ")
    where = f" on {host}" if host not in ("", platform.node()) else ""
    raise RunFolderInUseError(
        f"run folder {folder}: must be used by one process at a time, process "
        f"{number or 'unknown'}{where} is using it"
    )


def _is_same(descriptor: int, path: Path) -> bool:
    """Tell whether the locked file is still the one that others find."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _is_alive(holder: str) -> bool:
    """Tell whether a process that a lock file names is there; one elsewhere counts as such."""
    number, _, host = holder.partition(" ")
    if not number.isdigit():
        return False
    if host != platform.node():
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists, and is another user's
        return True
    return True
