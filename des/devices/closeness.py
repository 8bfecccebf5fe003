"""Tokens of ``nvidia-smi topo -m``: how two devices of a server are joined, and what is closer.

``NV#`` is # bonded NVLinks, PIX at most one PCIe bridge, PXB several, PHB the host bridge of a
processor, NODE several host bridges of a NUMA node, SYS the link between processors; old drivers
print SOC for SYS. NVIDIA, "nvidia-smi documentation", section "topo". Of AMD's GPUs, ``XGMI`` is
a link of theirs, which counts as one NVLink, and ``XGMI#`` a way over # links, which is none.
"""

import re
from typing import Literal

Relation = Literal["X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"]

RELATIONS: tuple[Relation, ...] = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS")
"""Relations of two devices, the closest first."""

_NVLINKS = re.compile(r"NV([1-9][0-9]?)")
XGMI_TOKENS = ("XGMI", *(f"XGMI{links}" for links in range(2, 10)))
"""Ways between AMD's GPUs, by the number of links."""

_OLD_NAMES: dict[str, Relation] = {"SOC": "SYS"}


def relation(token: str) -> Relation:
    """Relation that a token stands for: NVLinks and XGMI are NV, SOC is SYS.

    Raises
    ------
    ValueError
        If the token is none of those that the command prints.

    Examples
    --------
    >>> relation("NV12"), relation("SOC")
    ('NV', 'SYS')
    """
    if _NVLINKS.fullmatch(token) or token in XGMI_TOKENS:
        return "NV"
    for known in RELATIONS:
        if token == known and known != "NV":
            return known
    if token in _OLD_NAMES:
        return _OLD_NAMES[token]
    raise ValueError(
        f"token must be X, NV# (1 to 99), {', '.join(RELATIONS[2:])}, SOC or XGMI, got {token!r}"
    )


def num_nvlinks(token: str) -> int:
    """Count of NVLinks, or of AMD's links, that join two devices; 0 where none does.

    Examples
    --------
    >>> num_nvlinks("NV12"), num_nvlinks("PIX")
    (12, 0)
    """
    found = _NVLINKS.fullmatch(token)
    return int(found[1]) if found else int(token == XGMI_TOKENS[0])


def distance(token: str) -> int:
    """Place of a token in `RELATIONS`: lower is closer, 0 the device itself."""
    return RELATIONS.index(relation(token))
