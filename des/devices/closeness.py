"""Tokens of ``nvidia-smi topo -m``: how two devices of a server are joined, and what is closer.

``NV#`` is # bonded NVLinks, PIX at most one PCIe bridge, PXB several, PHB the host bridge of a
processor, NODE several host bridges of a NUMA node, SYS the link between processors; old drivers
print SOC for SYS. NVIDIA, "nvidia-smi documentation", section "topo".
"""

import re
from typing import Literal

Relation = Literal["X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"]

RELATIONS: tuple[Relation, ...] = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS")
"""Relations of two devices, the closest first."""

_NVLINKS = re.compile(r"NV([1-9][0-9]?)")
_OLD_NAMES: dict[str, Relation] = {"SOC": "SYS"}


def relation(token: str) -> Relation:
    """Relation that a token stands for: counts of NVLinks folded, SOC as SYS.

    Raises
    ------
    ValueError
        If the token is none of those that the command prints.

    Examples
    --------
    >>> relation("NV12"), relation("SOC")
    ('NV', 'SYS')
    """
    if _NVLINKS.fullmatch(token):
        return "NV"
    for known in RELATIONS:
        if token == known and known != "NV":
            return known
    if token in _OLD_NAMES:
        return _OLD_NAMES[token]
    raise ValueError(
        f"token must be X, NV# (1 to 99), {', '.join(RELATIONS[2:])} or SOC, got {token!r}"
    )


def num_nvlinks(token: str) -> int:
    """Count of NVLinks that join two devices; 0 where none does.

    Examples
    --------
    >>> num_nvlinks("NV12"), num_nvlinks("PIX")
    (12, 0)
    """
    found = _NVLINKS.fullmatch(token)
    return int(found[1]) if found else 0


def distance(token: str) -> int:
    """Place of a token in `RELATIONS`: lower is closer, 0 the device itself."""
    return RELATIONS.index(relation(token))
