"""Kinds of GPU by the names that drivers give devices."""

import re

from des.devices.gpu_kinds import GPU_KINDS


def kind_of_device(owner: str, device: str) -> str:
    """Kind of GPU of a device's name, such as ``NVIDIA A100-SXM4-80GB``.

    Raises
    ------
    ValueError
        If no kind, or several, are of that name.

    Examples
    --------
    >>> kind_of_device("a", "NVIDIA A100-SXM4-80GB"), kind_of_device("a", "NVIDIA GH200 120GB")
    ('a100_80', 'gh200')
    """
    words = re.findall(r"\d+(?=gb)|[a-z0-9]+", device.lower())
    whole = [one for one in GPU_KINDS if set(one.split("_")) <= set(words)]
    most = max((len(one.split("_")) for one in whole), default=0)
    sized = [one for one in whole if len(one.split("_")) == most]
    if len(sized) != 1:
        raise ValueError(
            f"{owner}: GPU {device!r} must be of one kind, got {', '.join(sized) or 'none'}; "
            f"known are {', '.join(GPU_KINDS)}"
        )
    return sized[0]
