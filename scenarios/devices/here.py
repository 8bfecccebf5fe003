"""Server of this machine: the programs that describe it are run, and their outputs read."""

import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from des.devices.files.server_files import ReadServer, read_files

PROGRAMS = (
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", "nvlink", "--status"),
    ("nvidia-smi", "-L"),
    ("rocm-smi", "--showtopo"),
    ("numactl", "--hardware"),
    ("lscpu",),
)
"""Programs that are run; the last one only where the one before is missing."""
_LONGEST_S = 60.0


def read_here(*, strict: bool) -> ReadServer:
    """Read the server of this machine.

    Raises
    ------
    ValueError
        If no program for GPUs is installed, or one fails, says nothing that is known or does not
        end within a minute.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, words in enumerate(PROGRAMS):
            if shutil.which(words[0]) is None or (words == ("lscpu",) and shutil.which("numactl")):
                continue
            text = _output(words)
            if not text.strip():  # such as nvlink --status without NVLinks
                continue
            paths.append(Path(folder) / f"{number} {' '.join(words)}")
            paths[-1].write_bytes(text)
        if not any(path.name.split()[1].endswith("-smi") for path in paths):
            raise ValueError("this machine: nvidia-smi or rocm-smi must be installed, got neither")
        try:
            found = read_files(paths, strict=strict)
            return replace(found, server=replace(found.server, name="this machine"))
        except ValueError as error:
            raise ValueError(f"this machine: {str(error).replace(f'{folder}/', '')}") from None


def _output(words: tuple[str, ...]) -> bytes:
    name = " ".join(words)
    try:
        done = subprocess.run(words, capture_output=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(f"this machine: {name} did not end within {_LONGEST_S:g} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise ValueError(
            f"this machine: {name} ended with code {done.returncode}: {(said or ['nothing'])[-1]}"
        )
    return done.stdout
