"""Routes of messages over links.

A message is corrected one dimension after the other, dimension 0 first. A link joins two places of
one dimension: within dimension 0 they are two NPUs; in a higher dimension they are what the lower
dimensions group together (two domains, say), and the link serves all pairs of NPUs in them. NPUs
whose higher coordinates differ never share a link.
"""

from collections.abc import Iterator
from typing import NamedTuple

from astra_sim.files.errors import AbortError
from astra_sim.files.network_config import AnyDimension, NetworkConfig


class LinkPlace(NamedTuple):
    """Directed link of a network; a switch of ``n`` places is their place ``n``."""

    dimension: int
    group: int
    """Number made of the coordinates above the dimension, which all who use the link share."""
    source: int
    target: int


def check_npu(num_npus: int, npu: int) -> None:
    """Refuse an NPU that the network does not have.

    Raises
    ------
    AbortError
        If the number is out of range.
    """
    if not 0 <= npu < num_npus:
        raise AbortError(f"message: NPU must be within [0, {num_npus}), got {npu}")


def differing_dimensions(
    config: NetworkConfig, source: int, target: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, group, source place and target place of each dimension to correct."""
    for number, dimension in enumerate(config.dimensions):
        source, here = divmod(source, dimension.num_npus)
        target, there = divmod(target, dimension.num_npus)
        if here != there:
            yield number, source, here, there


def links_within(dimension: AnyDimension, here: int, there: int) -> Iterator[tuple[int, int]]:
    """Yield the links from one place of a dimension to another, each as its two ends.

    The shorter way round a ring, upwards if both are equal; up to the switch and down again, also
    back to where the message came from; the one direct link elsewhere.

    Examples
    --------
    >>> from astra_sim.files.network_config import Dimension
    >>> ring = Dimension(topology="Ring", num_npus=4, bandwidth_gb_per_s=50.0, latency_ns=500.0)
    >>> list(links_within(ring, 3, 1))
    [(3, 0), (0, 1)]
    """
    size = dimension.num_npus
    if dimension.topology == "Switch":
        yield here, size
        yield size, there
    elif dimension.topology == "Ring":
        step = 1 if 2 * ((there - here) % size) <= size else -1
        while here != there:
            following = (here + step) % size
            yield here, following
            here = following
    else:
        yield here, there
