"""Search and binding of a trainer's plans on one network after another."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from agents.decision.bound_plan import BoundPlan
from agents.search.bind import PlanBinder
from agents.search.shared_parts import SharedParts
from agents.search.sketches import quickest_bound
from agents.trainers.trainer import Trainer
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload

FoundT = TypeVar("FoundT")

_MOST_PARTS = 5_000
"""Shared parts that are kept, about 30 MB; a decision over ten sites adds 150."""


class Once(Protocol):
    """Lookup in a cache, or none."""

    def __call__(self, key: Hashable, find: Callable[[], FoundT]) -> FoundT:
        """Return the value of a key, from the cache if it is there; an error is raised again."""


def find_each_time(key: Hashable, find: Callable[[], FoundT]) -> FoundT:
    """Return the value without a cache, for decisions whose time counts."""
    return find()


@dataclass(eq=False, kw_only=True)
class TrainerSearch:
    """Search and binding of the plans that a trainer runs; networks share parts of figures.

    Attributes
    ----------
    once
        Cache of plans by network, job and sketch, for studies that ask for the same ones often
        (default: none).
    """

    trainer: Trainer
    once: Once = find_each_time
    _shared: SharedParts = field(default_factory=SharedParts, init=False, repr=False)

    def quickest(
        self, topology: Topology, workload: Workload, corrections: Corrections = NO_CORRECTIONS
    ) -> BoundPlan:
        """Return the quickest plan; refused as `quickest_bound` refuses."""
        return self.once(
            ("quickest", topology, workload, corrections, self.trainer.name),
            lambda: quickest_bound(topology, workload, self.trainer, corrections, self._parts()),
        )

    def binder(
        self,
        topology: Topology,
        workload: Workload,
        corrections: Corrections = NO_CORRECTIONS,
        schedules: tuple[str, ...] | None = None,
    ) -> PlanBinder:
        """Return what binds plans on a network; None: to any schedule that the trainer lists."""
        return PlanBinder(
            topology=topology,
            workload=workload,
            trainer=self.trainer,
            corrections=corrections,
            schedules=self.trainer.schedules if schedules is None else schedules,
            shared=self._parts(),
        )

    def bind(self, binder: PlanBinder, plan: Plan) -> BoundPlan:
        """Bind a plan, see `PlanBinder.bind`."""
        world = binder.topology, binder.workload, binder.corrections
        key = ("bound", *world, self.trainer.name, binder.schedules, plan)
        return self.once(key, lambda: binder.bind(plan))

    def _parts(self) -> SharedParts:
        """Parts of the searches so far; new ones where there are too many."""
        if len(self._shared.parts) > _MOST_PARTS:
            self._shared = SharedParts()
        return self._shared
