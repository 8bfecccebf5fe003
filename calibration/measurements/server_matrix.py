"""Matrix of ``nvidia-smi topo -m``: the GPUs and network cards of a server."""

from collections.abc import Callable, Iterator, Sequence

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import SourceText
from des.base.checks import prefixed_errors
from des.devices.files.link_matrix import LinkMatrix
from des.devices.files.matrix_text import has_matrix, read_matrix
from des.devices.files.pasted import plain_lines

NAME = "nvidia-smi topo -m"


def holds(file: SourceText) -> bool:
    """Whether the text has the matrix of a server."""
    return not file.is_json and has_matrix(plain_lines(file.text))


def read(file: SourceText) -> Iterator[Reading]:
    """Read the number of GPUs, with the cards and link tokens as facts."""
    yield server_reading(file, NAME, read_matrix)


def server_reading(
    file: SourceText, name: str, read_links: Callable[[Sequence[str]], LinkMatrix]
) -> Reading:
    """Reading of a server from the matrix of its links."""
    with prefixed_errors(f"{file.path}: "):
        matrix = read_links(plain_lines(file.text))
        gpus = [label for label in matrix.names if label.startswith("GPU")]
        tokens = {
            token
            for row, label in zip(matrix.tokens, matrix.names, strict=True)
            for token, other in zip(row, matrix.names, strict=True)
            if label in gpus and other in gpus and label != other
        }
        return Reading(
            file=str(file.path),
            format=name,
            what="server",
            value=float(len(gpus)),
            facts=(
                ("network_cards", str(len(matrix.names) - len(gpus))),
                ("links", " ".join(sorted(tokens))),
            ),
        )
