"""This machine as a node: its address on an interface, its GPUs, a free port."""

import fcntl
import socket
import struct
from contextlib import ExitStack

from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from des.devices.files import nvml

_SIOCGIFADDR = 0x8915
_MOST_FAKE = 4096


def address_of(interface: str) -> str:
    """IPv4 address of a network interface.

    Raises
    ------
    ValueError
        If there is no such interface, or it has no address.

    Examples
    --------
    >>> address_of("lo")
    '127.0.0.1'
    """
    names = [name for _, name in socket.if_nameindex()]
    if interface not in names:
        raise ValueError(f"--interface: must be one of {', '.join(names)}; got {interface!r}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            found = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", interface.encode()))
        except OSError as error:
            raise ValueError(f"--interface {interface}: has no IPv4 address") from error
    return socket.inet_ntoa(found[20:24])


def free_ports(address: str, count: int) -> list[int]:
    """Find different ports that are free now at an address of this machine."""
    with ExitStack() as sockets:
        bound = [
            sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            for _ in range(count)
        ]
        for each in bound:
            each.bind((address, 0))
        return [each.getsockname()[1] for each in bound]


def num_gpus_of(text: str) -> int:
    """Count the GPUs that a flag names: ``auto`` counts those of the machine, ``fake:4`` none.

    A number must not be larger than what the machine has.

    Raises
    ------
    ValueError
        If it is no number, there are fewer GPUs, or NVML cannot tell.

    Examples
    --------
    >>> num_gpus_of("fake:4")
    4
    """
    kind, _, number = text.rpartition(":")
    is_number = number.isdecimal() and 1 <= int(number) <= _MOST_FAKE
    if kind == "fake" and is_number:
        return int(number)
    if kind or (text != "auto" and not is_number):
        raise ValueError(f"--gpus: must be auto, a number of GPUs, or fake:NUMBER; got {text!r}")
    try:
        found = len(nvml.read_machine().gpus)
    except ValueError as error:
        raise ValueError(f"--gpus {text}: {error}; fake:4 makes GPUs in name only") from error
    if not found or (text != "auto" and int(text) > found):
        raise ValueError(f"--gpus {text}: this machine has {found} GPUs")
    return found if text == "auto" else int(text)
