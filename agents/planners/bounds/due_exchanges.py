"""Least time of what copies exchange behind steps, in whole layers over single links."""

from typing import NamedTuple

import numpy as np

from agents.planners.bounds.job_figures import Real
from des.plan.synchronisation import Synchronisation


class DueExchange(NamedTuple):
    """Layers whose exchange starts after one step: their number, bytes, and least bytes of one."""

    num_layers: int
    num_bytes: float
    least_bytes: float

    def taken_s(
        self, links_bytes_per_s: Real, *, num_replicas: int, latency_s: float, is_mesh: bool
    ) -> Real:
        """Least time on links to one other copy, the quickest first, (..., J) to (...,). [s]

        A layer is in one domain of each copy, so it goes over one link, and back over the same one
        where messages take direct links. Two copies send every byte once each way. Of three or
        more a ring sends ``2 (R - 1) / R`` times as much; along a tree the sum of the last layer
        comes down a link after all of its layers went up. `num_replicas` copies or more.
        """
        alone_s = self._spread_s(links_bytes_per_s, 0)
        if num_replicas == 2:
            with np.errstate(divide="ignore"):
                twice_s = self.least_bytes / links_bytes_per_s[..., 0] + 2.0 * latency_s
            pair_s: Real = np.maximum(alone_s + latency_s, twice_s)
            return pair_s
        ring_s = 2.0 * (num_replicas - 1) / num_replicas * alone_s + latency_s
        tree_s = self._spread_s(links_bytes_per_s, 1) if is_mesh else alone_s
        found: Real = np.minimum(ring_s, tree_s + 2.0 * latency_s)
        return found

    def _spread_s(self, links_bytes_per_s: Real, num_more: int) -> Real:
        """Time until the last link has sent its layers and ``num_more`` others. [s]

        The next layer goes to the link that ends with it first, which is best for equal layers.
        """
        links = links_bytes_per_s[..., : max(self.num_layers, 1)]
        if self.num_bytes == 0.0:
            return np.zeros(links.shape[:-1])
        held = np.zeros(links.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(self.num_layers):
                ends = (held + 1.0 + num_more) / links
                place = ends.argmin(axis=-1)[..., np.newaxis]
                more = np.take_along_axis(held, place, axis=-1) + 1.0
                np.put_along_axis(held, place, more, axis=-1)
            last = np.where(held > 0.0, (held + num_more) / links, 0.0).max(axis=-1)
            total = (self.num_bytes + num_more * self.least_bytes) / links.sum(axis=-1)
        found: Real = np.maximum(last * self.least_bytes, total) if self.least_bytes else total
        return found


def due_exchanges(mode: Synchronisation, layer_bytes: Real) -> dict[int, DueExchange]:
    """Exchanges of a period of a mode by the step that they start after, 0 for the last one."""
    layers: dict[int, list[int]] = {}
    for fragment in mode.fragments(len(layer_bytes)):
        layers.setdefault(fragment.due_step % mode.steps_between, []).extend(fragment.layers)
    return {
        step: DueExchange(
            num_layers=len(own),
            num_bytes=float(layer_bytes[own].sum()),
            least_bytes=float(layer_bytes[own].min()),
        )
        for step, own in sorted(layers.items())
    }
