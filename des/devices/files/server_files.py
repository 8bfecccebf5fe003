"""Server read from files about one machine; the kind of each is found from its text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from des.devices.files.link_matrix import LinkMatrix
from des.devices.files.matrix_text import has_matrix, read_matrix
from des.devices.files.pasted import plain_lines
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadServer:
    """A server, and the matrix that it was read from, as printed."""

    server: Server
    matrix: LinkMatrix


def read_files(paths: Sequence[Path], *, strict: bool = False) -> ReadServer:
    """Read a server from files about it.

    Parameters
    ----------
    paths
        Files, one of which has the matrix of ``nvidia-smi topo -m`` or ``-mp``.
    strict
        See `des.devices.files.matrix_text.read_matrix`.

    Raises
    ------
    ValueError
        If a file cannot be read, is damaged, or none or several have a matrix; names the file.
    """
    read: list[ReadServer] = []
    for path in paths:
        lines = plain_lines(_text(path))
        if not has_matrix(lines) and len(paths) > 1:
            continue
        try:
            matrix = read_matrix(lines, strict=strict)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        read.append(ReadServer(server=matrix.server(str(path)), matrix=matrix))
    if len(read) != 1:
        raise ValueError(
            f"{', '.join(map(str, paths))}: one of the files must have a matrix of nvidia-smi "
            f"topo -m, got {len(read) or 'none'}"
        )
    return read[0]


def _text(path: Path) -> str:
    """Read a file in UTF-8, or in UTF-16 as Windows writes the output of programs."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    coding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        return content.decode(coding)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: cannot be read: not UTF-8 text") from error
