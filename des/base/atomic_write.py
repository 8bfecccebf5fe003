"""Files written so that a reader, or the machine after a power cut, has the old or the new one."""

import errno
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_NEIGHBOUR = re.compile(r"\.(.+?)(?:\.[0-9a-f]{8})?\.tmp", re.DOTALL)
"""Names of temporary neighbours; those without a random part are of earlier releases."""

_LEFT_S = 3600.0
"""Age from which a temporary neighbour counts as left by a killed process. [s]"""


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a temporary neighbour of ``path`` and let it take its place; see `write_together`."""
    write_together({Path(path): content})


def write_together(files: Mapping[Path, bytes], *, synced: bool = True) -> None:
    """Write temporary neighbours of all files, then let each take its place, in their order.

    Their names are random and must be new, so any number of processes may write the same files at
    once, and no link with such a name is followed. If writing fails, the old files stay and the
    neighbours are removed. If the process is killed between two files, `finish_together` gives the
    others their places.

    Parameters
    ----------
    files
        Contents by path.
    synced
        Whether contents, then names reach the disk itself before this returns. Files that are
        made again in no time need not.

    Raises
    ------
    OSError
        If a folder does not exist or cannot be written, or a folder stands where a file should be.
    """
    token, neighbours = secrets.token_hex(4), dict[Path, Path]()
    try:
        for path, content in files.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            neighbours[path] = path.with_name(f".{path.name}.{token}.tmp")
            _write(neighbours[path], content, path, synced=synced)
        _remove_left(files)
        for path, neighbour in neighbours.items():
            neighbour.replace(path)
    except BaseException:
        for neighbour in neighbours.values():
            neighbour.unlink(missing_ok=True)
        raise
    if synced:
        _sync_folders(files)


def finish_together(paths: Iterable[Path]) -> None:
    """Give neighbours that a killed `write_together` has left the places that are still empty.

    Only for paths after the first one of that call, once the first is in its place: by then all
    neighbours were whole. Of several neighbours the newest is that of the call.
    """
    pending = [path for path in paths if not path.exists()]
    for path in pending:
        written = [each for each in path.parent.iterdir() if target_of(each) == path]
        whole = [each for each in written if each.is_file() and not each.is_symlink()]
        if whole:
            max(whole, key=lambda each: each.stat().st_mtime_ns).replace(path)
    _sync_folders(pending)


def target_of(path: Path) -> Path | None:
    """File whose temporary neighbour has a path's name; None of other names."""
    found = _NEIGHBOUR.fullmatch(path.name)
    return None if found is None else path.with_name(found[1])


def _remove_left(paths: Iterable[Path]) -> None:
    """Remove neighbours of paths that killed processes left; what is another user's may stay."""
    targets, before_s = set(paths), time.time() - _LEFT_S
    for folder in {path.parent for path in targets}:
        with suppress(OSError):
            for each in folder.iterdir():
                target = target_of(each)
                if target is None or target not in targets:
                    continue
                if each.name == f".{target.name}.tmp" or each.lstat().st_mtime < before_s:
                    each.unlink(missing_ok=True)


def _write(neighbour: Path, content: bytes, path: Path, *, synced: bool) -> None:
    try:
        with neighbour.open("xb") as file:  # O_EXCL: a link of that name is not followed
            file.write(content)
            if synced:
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(path)  # what people know; where there is no room there is no name
        raise


def _sync_folders(paths: Iterable[Path]) -> None:
    """Let the names in the folders of all paths reach the disk."""
    for folder in dict.fromkeys(path.parent for path in paths):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: a file system that syncs names by itself
                raise
        finally:
            os.close(descriptor)
