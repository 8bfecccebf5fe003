"""Change from the plan in force to another: its cost, and the time until it has paid."""

import math
from dataclasses import dataclass, replace

from agents.answer.question import PlanInForce
from agents.answer.rows import FamilyRow
from agents.decision.whole_plan import WholeProblem
from des import Plan, migration_s, moved_bytes
from des.plan.replacement import Replacement


@dataclass(frozen=True, kw_only=True)
class PlanChange:
    """A change of plan against staying.

    Attributes
    ----------
    present
        The plan in force on the network as it is; None where its links are gone.
    misfit
        What it lacks of memory or links now; None where it can run.
    num_bytes
        Model state that the new domains lack, which goes over the WAN. [bytes]
    change_s
        For which the training stands still. [s]
    saved_s
        Time that a step of the plan in force takes longer, at the prices in tokens; 0 where it
        cannot run for want of links. [s]
    """

    in_force: PlanInForce
    present: FamilyRow | None
    misfit: str | None
    num_bytes: float
    change_s: float
    saved_s: float

    @property
    def gain(self) -> float:
        """Share of the present time that is saved."""
        present_s = None if self.present is None else self.present.priced_s
        return 0.0 if present_s is None else self.saved_s / present_s

    @property
    def stays(self) -> bool:
        """Whether nothing changes."""
        return self.change_s == 0.0

    def steps_until_paid(self) -> int | None:
        """Steps after which the change has saved what it cost; None where it never does."""
        if self.saved_s <= 0.0:
            return None
        return math.ceil(self.change_s / self.saved_s)


def change_to(
    problem: WholeProblem,
    in_force: PlanInForce,
    chosen: FamilyRow,
    replacement: Replacement,
    *,
    present: FamilyRow | None = None,
    misfit: str | None = None,
) -> PlanChange:
    """Reckon what it costs to leave the plan in force.

    ``present`` and ``misfit`` are those of `PlanChange`.

    A domain that has a layer, for whichever replica, is not sent it again; so from replicas to a
    pipeline nothing moves. A plan that stays but for the size of its microbatches costs a restart.

    Raises
    ------
    UnreachableError
        If a layer has to go where no links lead.
    """
    workload, new = chosen.judged.workload, _without_shares(chosen.judged.plan)
    old = _without_shares(in_force.plan)
    is_same = (workload, chosen.judged.plan) == (in_force.workload, in_force.plan)
    num_bytes, change_s = 0.0, 0.0 if is_same else replacement.restart_s
    if old != new and replacement.pays_bytes:
        num_bytes = math.fsum(moved_bytes(workload, old, new).values())
        change_s = migration_s(
            problem.topology,
            workload,
            old,
            new,
            restart_s=replacement.restart_s,
            corrections=problem.corrections,
        )
    saved_s = 0.0
    if present is not None and not is_same:
        saved_s = (present.priced_s or 0.0) - (chosen.priced_s or 0.0)
    return PlanChange(
        in_force=in_force,
        present=present,
        misfit=misfit,
        num_bytes=num_bytes,
        change_s=change_s,
        saved_s=saved_s,
    )


def _without_shares(plan: Plan) -> Plan:
    """The plan with even shares: they depend on the microbatches and move no state."""
    return replace(plan, shares=(), parallelism=())
