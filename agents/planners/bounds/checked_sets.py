"""Groups that a bound lets do all microbatches, checked one by one in whole layers."""

from dataclasses import dataclass, field

import numpy as np

from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.set_kernels import Whole
from agents.planners.bounds.whole_layers import WholeLayers

_MOST_DOMAINS = 5
"""Most domains of a group that is checked in every order; larger ones pass."""


@dataclass(frozen=True, kw_only=True)
class CheckedSets:
    """Pipelines of single sets of domains, in whole layers and every order.

    ``figures`` have the state that copies hold.
    """

    figures: JobFigures
    _layers: dict[int, WholeLayers] = field(default_factory=dict)
    _known: dict[int, list[tuple[float, float, bool]]] = field(default_factory=dict)

    def most(self, members: int, count: float, time_s: float) -> float:
        """Most microbatches, at most ``count``, of a set as one pipeline by a time."""
        if not 2 <= members.bit_count() <= _MOST_DOMAINS or self._holds(members, count, time_s):
            return count
        fewer = 1.0
        while count > fewer and not self._holds(members, count - fewer, time_s):
            fewer *= 2.0
        return count - 1.0 if fewer == 1.0 else count - 0.5 * fewer - 1.0

    def _holds(self, members: int, count: float, time_s: float) -> bool:
        """Whether a set may do some microbatches; results for other sets are used."""
        known = self._known.setdefault(members, [])
        for other, other_s, is_enough in known:
            if is_enough and count <= other and time_s >= other_s:
                return True
            if not is_enough and count >= other and time_s <= other_s:
                return False
        if members not in self._layers:
            domains = [one for one in range(members.bit_length()) if members >> one & 1]
            self._layers[members] = WholeLayers(figures=self.figures.of_domains(domains))
        is_enough = self._layers[members].hold_pipeline(time_s, int(count))
        known.append((count, time_s, is_enough))
        return is_enough


def pack_sets(counts: Real, rests: tuple[Real, ...]) -> list[int]:
    """Disjoint sets, the first of several domains, that do most microbatches together.

    ``rests`` are `best_rests` of one group less each time, the last one for all that follow.
    """
    sets: Whole = np.arange(len(counts))
    left = sets[::-1]  # everything but the domains of a set
    is_several = (sets & (sets - 1)) != 0
    is_first = is_several & (counts > 0.0) & (rests[0][left] > 0.0)
    total = np.where(is_first, counts + rests[0][left], -1.0)
    found = [int(total.argmax())]
    outside = int(left[found[0]])
    for level in range(len(counts)):
        here = rests[min(level, len(rests) - 1)]
        if here[outside] <= 0.0:
            break
        below = rests[level + 1] if level + 1 < len(rests) else rests[-1]
        inside = sets[((sets & ~outside) == 0) & (counts > 0.0)]
        more = counts[inside] + below[outside ^ inside]
        best = int(inside[more.argmax()])
        found.append(best)
        outside ^= best
    return found
