"""Folders and files of this user alone: run or unpickled when read again, or with secrets."""

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

_NAME = "eastwest"


def is_private(folder: Path) -> bool:
    """Make a folder of mode 0700, or check one that is there.

    One of ours that others may read is closed to them. False if it cannot be made, is a link, is
    another user's, cannot be written, or could have been written by others.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
        if stat.S_IMODE(found.st_mode) != stat.S_IRWXU:
            os.fchmod(descriptor, stat.S_IRWXU)
        return os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def open_private(path: str, flags: int) -> int:
    """Open a file that this user alone can read, for ``open(..., opener=open_private)``.

    One that is there is closed to others; a link is not followed.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


@cache
def cache_folder(home: str | None, shared: str | None) -> Path | None:
    """Return the private folder of the user's caches.

    Parameters
    ----------
    home
        Folder of caches of the user; None where there is no home, as in a container.
    shared
        Folder of temporary files; None where there is none that can be written.

    Returns
    -------
    Path or None
        That in ``home``, else one in ``shared`` with the number of the user in its name, else a new
        one for this process alone, removed at its end; None where nothing can be written.
    """
    candidates = [Path(home) / _NAME] if home else []
    candidates += [Path(shared) / f"{_NAME}-{os.geteuid()}"] if shared else []
    for candidate in candidates:
        if is_private(candidate):
            return candidate
    try:
        own = tempfile.mkdtemp(prefix=f"{_NAME}-", dir=shared)  # mode 0700, an unknown name
    except OSError:
        return None
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def user_cache_folder() -> Path | None:
    """Return `cache_folder` for the environment of this process."""
    home: str | None = os.environ.get("XDG_CACHE_HOME")
    if not home:
        try:
            home = str(Path.home() / ".cache")
        except RuntimeError:  # no HOME, and no entry of this user
            home = None
    try:
        shared: str | None = tempfile.gettempdir()
    except OSError:
        shared = None
    return cache_folder(home, shared)
