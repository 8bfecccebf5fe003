"""Cache of plan times, for methods that are judged on the same networks."""

from collections.abc import Hashable, Sequence

import numpy as np

from agents.judge.steady_judge import SteadyJudge
from agents.replanning.plan_costs import PlanTimes
from des import Plan, Topology
from des.compiled.many.layout import Real


class KnownTimes:
    """Times of plans of a job on named lists of networks, each worked out once.

    The networks of a name are always the same.
    """

    def __init__(self, judge: SteadyJudge) -> None:
        self._times = PlanTimes(judge)
        self._row: dict[Plan, int] = {}
        self._known: dict[Hashable, Real] = {}

    def on_all(self, name: Hashable, topologies: Sequence[Topology], plans: Sequence[Plan]) -> Real:
        """Times of plans on each network of a list, (T, C), see `PlanTimes.on`. [s]"""
        new = [plan for plan in dict.fromkeys(plans) if plan not in self._row]
        self._row |= {plan: row for row, plan in enumerate(new, start=len(self._row))}
        self._times.add(new)
        known_s = self._known.get(name, np.empty((len(topologies), 0)))
        if known_s.shape[1] < len(self._row):
            more_s = self._times.on_all(topologies, since=known_s.shape[1])
            known_s = self._known[name] = np.concatenate([known_s, more_s], axis=1)
        return known_s[:, [self._row[plan] for plan in plans]]
