"""Recorded cases of ASTRA-sim's analytical programs, in archives.

``tests/golden/README.md`` says what a case holds and where it comes from.
"""

import functools
import tarfile
from pathlib import Path

ARCHIVES = Path(__file__).resolve().parent / "golden"
CASES = "astra"
CORNERS = "astra_corners"


@functools.cache
def names(archive: str) -> tuple[str, ...]:
    """Names of the cases of an archive."""
    with tarfile.open(ARCHIVES / f"{archive}.tar.xz") as packed:
        return tuple(member.name for member in packed if member.isdir())


def unpack(archive: str, folder: Path) -> Path:
    """Unpack all cases of an archive below the folder; return where they are."""
    with tarfile.open(ARCHIVES / f"{archive}.tar.xz") as packed:
        packed.extractall(folder / archive, filter="data")
    return folder / archive
