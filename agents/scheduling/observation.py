"""Observation of the scheduling task: what each of its entries says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from agents.scheduling.setting import KnownPlan, Setting
from des.compiled.many.layout import Observations, Real, Whole

LARGEST = 10.0
"""Largest absolute value of an entry; beyond it is clipped."""


@dataclass(frozen=True, eq=False)
class Observing:
    """Layout of the observation of K domains, W = K (K - 1) links and C known plans.

    Links come in order of source and target. All entries are ratios or logarithms of such.
    """

    setting: Setting
    num_known: int
    _figures: WeakKeyDictionary[KnownPlan, Real] = field(default_factory=WeakKeyDictionary)

    @cached_property
    def lengths(self) -> dict[str, int]:
        """Number of entries of each part, in order.

        ``link_bandwidth``, ``link_latency`` and ``domain_speed`` are logarithms of the figures over
        those at base; ``link_held`` and ``domain_held`` the logarithm of 1 + the epochs since the
        bandwidth, or the speed, last changed, over that of 1 + the epochs of an episode. Of the
        plan in force: the number of each domain's pipeline and its place within (from 1 on, over
        K, 0 for unused), its share of the layers and its pipeline's share of the microbatches;
        its ``schedule`` and ``mode`` as one of several; and ``own_step``, the logarithm of its
        iteration now over that of the start plan at base figures. Of each known plan:
        ``known_step``, the logarithm of its iteration now over that of the plan in force, and
        ``change``, the logarithm of 1 + the time of a change to it over an epoch. Then ``left``,
        the share of epochs to come, and ``is_first``: whether a change is free.
        """
        size, setting = self.setting.num_domains, self.setting
        num_links = size * (size - 1)
        return {
            "link_bandwidth": num_links,
            "link_latency": num_links,
            "domain_speed": size,
            "link_held": num_links,
            "domain_held": size,
            "group": size,
            "place": size,
            "layer_share": size,
            "batch_share": size,
            "schedule": len(setting.space.schedules),
            "mode": len(setting.modes),
            "own_step": 1,
            "known_step": self.num_known,
            "change": self.num_known,
            "left": 1,
            "is_first": 1,
        }

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Entries by name."""
        found, begin = {}, 0
        for name, length in self.lengths.items():
            found[name] = slice(begin, begin + length)
            begin += length
        return found

    @property
    def size(self) -> int:
        """Number of entries, D."""
        return sum(self.lengths.values())

    def written(
        self,
        seen: Real,
        plans: Sequence[KnownPlan],
        *,
        own_step: Real,
        known_step: Real,
        change: Real,
        epochs: Whole,
    ) -> Observations:
        """Put observations together, (N, D).

        Parameters
        ----------
        seen
            See `agents.scheduling.draws.DrawnCourse`, (N, V).
        plans
            Plans in force, N.
        own_step, known_step, change
            (N,), (N, C) and (N, C), as in the observation.
        epochs
            Epochs that are over, (N,).
        """
        num_epochs, count = self.setting.world.num_epochs, len(plans)
        whole = np.concatenate(
            [
                seen,
                np.array([self._of_plan(one) for one in plans]).reshape(count, -1),
                own_step[:, np.newaxis],
                known_step,
                change,
                (1.0 - epochs / num_epochs)[:, np.newaxis],
                (epochs == 0).astype(np.float64)[:, np.newaxis],
            ],
            axis=1,
        )
        observations: Observations = np.clip(whole, -LARGEST, LARGEST).astype(np.float32)
        return observations

    def _of_plan(self, one: KnownPlan) -> Real:
        found = self._figures.get(one)
        if found is None:
            setting, plan = self.setting, one.plan
            kinds = [each == plan.schedule for each in setting.space.schedules]
            mode = plan.synchronisation if plan.replicas else setting.modes[0]
            modes = [each == mode for each in setting.modes]
            found = np.concatenate([one.by_domain, kinds, modes])
            self._figures[one] = found
        return found
