"""Least time of what copies exchange after steps, in whole layers over single links."""

import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from agents.planners.bounds.set_kernels import Real
from des.base.jit import inlined, kernel
from des.plan.synchronisation import Synchronisation


class DueExchange(NamedTuple):
    """Layers whose exchange starts after one step: their number, bytes, and least bytes of one."""

    num_layers: int
    num_bytes: float
    least_bytes: float


class ExchangeWay(NamedTuple):
    """Way in which copies send what is due, over links of a least latency.

    Two copies send every byte once each way. Of three or more a ring sends ``ring_factor`` times as
    much, and along a tree the sums of ``num_more`` layers come down each link after all of its
    layers went up.
    """

    is_pair: bool
    ring_factor: float
    num_more: int
    latency_s: float


@lru_cache(maxsize=64)
def due_exchanges(
    mode: Synchronisation, layer_bytes: tuple[float, ...]
) -> Mapping[int, DueExchange]:
    """Exchanges of a period of a mode by the step that they start after, 0 for the last one."""
    layers: dict[int, list[int]] = {}
    for fragment in mode.fragments(len(layer_bytes)):
        layers.setdefault(fragment.due_step % mode.steps_between, []).extend(fragment.layers)
    found = {}
    for step, own in sorted(layers.items()):
        each = [layer_bytes[layer] for layer in own]
        found[step] = DueExchange(len(own), math.fsum(each), min(each))
    return MappingProxyType(found)


@inlined
def _spread_s(links: Real, num_links: int, due: DueExchange, num_more: int, held: Real) -> float:
    """Time until the last link has sent its whole layers and ``num_more`` further ones. [s]

    The next layer goes to the link that ends with it first, which is best for equal layers.
    """
    for place in range(num_links):
        held[place] = 0.0
    last, total = 0.0, 0.0
    for _ in range(due.num_layers):
        best, ends = 0, np.inf
        for place in range(num_links):
            own = (held[place] + 1.0 + num_more) / links[place]
            if own < ends:
                best, ends = place, own
        held[best] += 1.0
        last = max(last, ends)
    for place in range(num_links):
        total += links[place]
    return max(last * due.least_bytes, (due.num_bytes + num_more * due.least_bytes) / total)


@kernel
def exchange_s(
    links: Real, num_links: int, due: DueExchange, way: ExchangeWay, held: Real
) -> float:
    """Least time of an exchange on links to another copy, the quickest first. [s]

    A layer is in one domain of each copy, so it goes over one link. ``held`` is overwritten.
    """
    if due.num_bytes == 0.0:
        return way.latency_s
    if num_links == 0:
        return np.inf
    alone_s = _spread_s(links, num_links, due, 0, held)
    if way.is_pair:
        half_s = due.least_bytes / links[0] + 2.0 * way.latency_s
        return float(max(alone_s + way.latency_s, half_s))
    tree_s = _spread_s(links, num_links, due, way.num_more, held) + 2.0 * way.latency_s
    return min(way.ring_factor * alone_s + way.latency_s, tree_s)


@kernel
def write_exchanges_s(links: Real, due: DueExchange, way: ExchangeWay, found_s: Real) -> None:
    """Write `exchange_s` for each row of links, 0 after the last one, (N, J), to (N,). [s]"""
    held = np.empty(links.shape[1])
    for row in range(links.shape[0]):
        num_links = 0
        while num_links < links.shape[1] and links[row, num_links] > 0.0:
            num_links += 1
        found_s[row] = exchange_s(links[row], num_links, due, way, held)
