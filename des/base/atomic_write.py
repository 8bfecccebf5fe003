"""Files written so that a reader, or the machine after a power cut, has the old or the new one."""

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a temporary neighbour of ``path`` and let it take its place; see `write_together`."""
    write_together({Path(path): content})


def write_together(files: Mapping[Path, bytes], *, synced: bool = True) -> None:
    """Write temporary neighbours of all files, then let each take its place, in their order.

    If writing fails, the old files stay and the neighbours are removed. If the process is killed
    between two files, `finish_together` gives the others their places.

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
    neighbours = {path: neighbour_of(path) for path in files}
    try:
        for path, content in files.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            _write(neighbours[path], content, path, synced=synced)
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
    neighbours were whole.
    """
    pending = [path for path in paths if not path.exists() and neighbour_of(path).exists()]
    for path in pending:
        neighbour_of(path).replace(path)
    _sync_folders(pending)


def neighbour_of(path: Path) -> Path:
    """Temporary file in which the content of a path is written."""
    return path.with_name(f".{path.name}.tmp")


def is_neighbour(path: Path) -> bool:
    """Tell whether a path has the name of such a temporary file."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _write(neighbour: Path, content: bytes, path: Path, *, synced: bool) -> None:
    try:
        with neighbour.open("wb") as file:
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
