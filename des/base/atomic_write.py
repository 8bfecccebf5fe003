"""Writing files so that a reader sees the old content or the new one, never half of either."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a temporary neighbour of ``path`` and let it take its place; see `write_together`."""
    write_together({Path(path): content})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write temporary neighbours of all files, then let each take its place.

    If writing fails, the old files stay and the neighbours are removed.

    Raises
    ------
    OSError
        If a folder does not exist or cannot be written, or a folder stands where a file should be.
    """
    neighbours = {path: path.with_name(f".{path.name}.tmp") for path in files}
    try:
        for path, content in files.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            _write(neighbours[path], content, path)
        for path, neighbour in neighbours.items():
            neighbour.replace(path)
    except BaseException:
        for neighbour in neighbours.values():
            neighbour.unlink(missing_ok=True)
        raise


def _write(neighbour: Path, content: bytes, path: Path) -> None:
    try:
        neighbour.write_bytes(content)
    except OSError as error:
        error.filename = str(path)  # what people know; where there is no room there is no name
        raise
