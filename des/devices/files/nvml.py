"""Server of this machine, read by NVML, NVIDIA's management library."""

from des.devices.server import Server


def read_machine() -> Server:
    """Read the GPUs of this machine.

    Raises
    ------
    ValueError
        If the Python package pynvml or the library is not there.
    """
    raise ValueError("NVML: needs the package nvidia-ml-py (pynvml), which is not installed")
