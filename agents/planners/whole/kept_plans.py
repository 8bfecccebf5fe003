"""The best plans of a search, by family and number of copies of the model."""

from collections.abc import Mapping, Sequence, Set

from agents.decision.families import Family
from agents.decision.whole_plan import JudgedPlan
from des import Plan, Workload


class KeptPlans:
    """The quickest plan of each family and number of copies; the first of equals."""

    def __init__(self) -> None:
        self._best: dict[tuple[Family, int], JudgedPlan] = {}

    @property
    def families(self) -> Set[Family]:
        """Families of which a plan is kept."""
        return {family for family, _ in self._best}

    def keep(self, workload: Workload, plan: Plan, step_s: float) -> None:
        """Keep a plan if it is the quickest of its kind so far. [s]"""
        judged = JudgedPlan(workload=workload, plan=plan, step_s=step_s)
        kind = judged.family, len(plan.placements)
        known = self._best.get(kind)
        if known is None or step_s < known.step_s:
            self._best[kind] = judged

    def by_family(self, families: Sequence[Family]) -> Mapping[Family, JudgedPlan]:
        """Quickest plan of each of some families, in their order."""
        return {
            family: min(own, key=lambda each: each.step_s)
            for family, own in self.by_copies(families).items()
        }

    def by_copies(self, families: Sequence[Family]) -> Mapping[Family, tuple[JudgedPlan, ...]]:
        """Quickest plans of each of some families by the number of copies, in order."""
        found = {
            family: tuple(self._best[kind] for kind in sorted(self._best) if kind[0] == family)
            for family in families
        }
        return {family: own for family, own in found.items() if own}
