"""Tables of ``rocm-smi --showtopo``: the GPUs of a server of AMD."""

from collections.abc import Iterator

from calibration.measurements.reading import Reading
from calibration.measurements.server_matrix import server_reading
from calibration.measurements.source_text import SourceText
from des.devices.files.pasted import plain_lines
from des.devices.files.rocm_topology import has_rocm_topology, read_rocm_topology

NAME = "rocm-smi --showtopo"


def holds(file: SourceText) -> bool:
    """Whether the text has one of the tables."""
    return not file.is_json and has_rocm_topology(plain_lines(file.text))


def read(file: SourceText) -> Iterator[Reading]:
    """Read the number of GPUs, with the link types as facts."""
    yield server_reading(file, NAME, read_rocm_topology)
