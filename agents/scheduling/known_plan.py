"""Plans as the scheduling task knows them: what stays the same whatever the network does."""

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from agents.decision.families import Family, family_of
from agents.judge.step_times import step_wan_bytes
from agents.search.sketches import sketch_of
from des import Plan, Workload
from des.compiled.many.layout import Real, Small
from des.costs.outer_state import has_outer_state


@dataclass(frozen=True, eq=False)
class KnownPlan:
    """A plan of a job, with figures that are worked out once."""

    plan: Plan
    workload: Workload
    num_domains: int

    @cached_property
    def family(self) -> Family:
        """Kind of the plan."""
        return family_of(self.plan)

    @cached_property
    def layers(self) -> Small:
        """Domains of the layers of each pipeline, (R, L)."""
        return np.array([one.domain_of_layer for one in self.plan.placements], dtype=np.int32)

    @cached_property
    def has_outer_state(self) -> bool:
        """Whether its replicas have an outer optimiser."""
        return has_outer_state(self.plan)

    @cached_property
    def wan_bytes(self) -> float:
        """Bytes that leave a domain in a step, mean over a period of the synchronisation."""
        return float(step_wan_bytes(self.workload, [self.plan])[0])

    @cached_property
    def by_domain(self) -> Real:
        """Figures of each domain in the plan, (4 K,), all from 0, unused, to 1.

        Number of its pipeline; its place within that, both from 1 on and over the number of
        domains; its share of the layers; and its pipeline's share of the microbatches.
        """
        size, workload = self.num_domains, self.workload
        found = np.zeros((4, size))
        shares = self.plan.microbatches_of_replicas(workload.num_microbatches)
        placements = sketch_of(self.plan).placements  # a domain that comes back counts once
        for number, (placement, share) in enumerate(zip(placements, shares, strict=True)):
            for stage in placement.stages:
                found[:, stage.domain] = (
                    (number + 1) / size,
                    (stage.index + 1) / size,
                    stage.num_layers / workload.num_layers,
                    share / workload.num_microbatches,
                )
        return found.ravel()


class PlanBook:
    """The plans of a job in use: equal plans are one object."""

    def __init__(self, workload: Workload, num_domains: int) -> None:
        self._workload, self._num_domains = workload, num_domains
        self._known: WeakValueDictionary[Plan, KnownPlan] = WeakValueDictionary()

    def of(self, plan: Plan) -> KnownPlan:
        """Return a plan with its figures."""
        known = self._known.get(plan)
        if known is None:
            known = self._known[plan] = KnownPlan(plan, self._workload, self._num_domains)
        return known
