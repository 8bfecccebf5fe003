"""Files read as far as a bound: a name may be that of an endless device."""

from pathlib import Path

_BLOCK_BYTES = 2**20


def read_at_most(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is larger.
    """
    content = bytearray()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            content += block
            if len(content) > most_bytes:
                raise ValueError(f"{path}: must have at most {most_bytes} bytes, got more")
    return bytes(content)
