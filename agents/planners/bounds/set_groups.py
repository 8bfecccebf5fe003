"""Groups of a few domains: whether some may do a step by a time, in at most some checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.planners.bounds.checked_sets import CheckedSets, pack_sets
from agents.planners.bounds.count_kernels import SetJob
from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.pair_kernels import (
    PairLinks,
    counts_beside,
    groups_hold,
    two_groups_hold,
)
from agents.planners.bounds.set_kernels import Whole, best_packing, best_rests

_MOST_CHECKS, _LEAST_CHECKS = 14, 4
"""Checks of groups that together might do a step, less one for each domain."""


@dataclass(frozen=True, kw_only=True)
class SetGroups:
    """Some number of groups, one of several domains, that are copies of a model.

    ``figures`` have the state that copies hold. ``num_groups`` is two, three, or four as the least
    of all others. Groups exchange over the links between two of them, ``pair``; None: over all.
    """

    figures: JobFigures
    num_groups: int
    job: SetJob
    pair: PairLinks | None
    is_checked: bool

    def hold(self, time_s: float, counts: Real, passes_s: Real) -> bool:
        """Whether groups may do all microbatches by a time.

        ``counts`` are the most microbatches of each set, and ``passes_s`` the most time of its
        passes, (2^K,).
        """
        for _ in range(self._num_checks):
            rests = self._rests(counts)
            if best_packing(counts, rests[0]) < self.job.num_microbatches:
                return False
            found = pack_sets(counts, rests)
            if self.pair is not None and self.num_groups == 2:
                two = int(two_groups_hold(self.job, self.pair, time_s, counts))
                if two < 0:
                    return False
                found = list(divmod(two, len(counts)))
            elif self.pair is not None and not groups_hold(
                self.job, self.pair, time_s, counts, np.array(found)
            ):
                counts = counts_beside(self.job, self.pair, time_s, counts, rests[1])
                rests = self._rests(counts)
                if best_packing(counts, rests[0]) < self.job.num_microbatches:
                    return False
                found = pack_sets(counts, rests)
            if not self.is_checked or not self._lower(counts, found, passes_s):
                return True
        return True

    def _lower(self, counts: Real, found: Sequence[int], passes_s: Real) -> bool:
        """Lower the microbatches of sets to those of whole layers; False where none fell.

        Sets of the same domains, or fewer, in no more time do no more.
        """
        has_fallen = False
        for members in found:
            most = self._checked.most(members, counts[members], float(passes_s[members]))
            if most < counts[members]:
                within = self._is_several & (self._sets & ~members == 0)
                within &= passes_s <= passes_s[members]
                counts[within] = np.minimum(counts[within], most)
                has_fallen = True
        return has_fallen

    def _rests(self, counts: Real) -> tuple[Real, ...]:
        """`best_rests` of one group less each time; the last one is for all that follow."""
        if self.num_groups > 3:
            others = best_rests(counts, self.num_groups - 1)
            return others, others
        fewer = [best_rests(counts, count) for count in range(self.num_groups - 1, 0, -1)]
        return *fewer, np.zeros_like(counts)

    @property
    def _num_checks(self) -> int:
        """Number of checks of groups."""
        if not self.is_checked:
            return 1
        return max(_MOST_CHECKS - len(self.figures.memory_bytes), _LEAST_CHECKS)

    @cached_property
    def _checked(self) -> CheckedSets:
        """Pipelines of single sets."""
        return CheckedSets(figures=self.figures)

    @cached_property
    def _sets(self) -> Whole:
        """All sets, (2^K,)."""
        return np.arange(1 << len(self.figures.memory_bytes))

    @cached_property
    def _is_several(self) -> "np.typing.NDArray[np.bool_]":
        """Whether a set has several domains, (2^K,)."""
        several: np.typing.NDArray[np.bool_] = (self._sets & (self._sets - 1)) != 0
        return several
