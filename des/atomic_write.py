"""Writing files so that a reader sees the old content or the new one, never half of either."""

from pathlib import Path


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a temporary neighbour of ``path`` and let it take its place.

    If writing fails the old file stays and the neighbour is removed.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    path = Path(path)
    neighbour = path.with_name(f".{path.name}.tmp")
    try:
        neighbour.write_bytes(content)
        neighbour.replace(path)
    except BaseException:
        neighbour.unlink(missing_ok=True)
        raise
