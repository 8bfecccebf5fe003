"""Whether a plan can be used as a whole, and what becomes of one when domains come and go."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from agents.decision.other_domains import plan_on_domains
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Situation
from agents.hi_ppo.local.case import DomainCase
from agents.hi_ppo.local.decide import LocalDecision
from des import InfeasiblePlacementError, Plan, check_memory


def require_valid(situation: Situation, plan: Plan) -> None:
    """Refuse a plan that does not fit into memory or sends where no links lead.

    Raises
    ------
    InfeasiblePlacementError
        Naming the domain that lacks most, what it needs and what it has.
    UnreachableError
        Naming the two domains.
    """
    check_memory(leave_reserved_memory(situation), situation.workload, plan)
    for placement in plan.placements:
        for upper, lower in pairwise(placement.stages):
            situation.topology.route(upper.domain, lower.domain)
            situation.topology.route(lower.domain, upper.domain)


def require_free(case: DomainCase, decision: LocalDecision) -> None:
    """Refuse a binding to GPUs that others have taken.

    Raises
    ------
    InfeasiblePlacementError
        Naming the domain, the GPUs that are free and those that are taken.
    """
    taken = sorted(set(decision.binding) - set(case.free_gpus))
    if taken:
        raise InfeasiblePlacementError(
            f"domain {case.domain.name}: plan must be bound to the free GPUs "
            f"{', '.join(map(str, case.free_gpus))}, got {', '.join(map(str, taken))} too"
        )


def plan_of_other_domains(plan: Plan, old: Sequence[str], new: Sequence[str]) -> Plan | None:
    """`plan_on_domains` of a single pipeline without its degrees; None for replicas."""
    if plan.replicas:
        return None
    bare = replace(plan.placement, stage_layers=())
    return plan_on_domains(replace(plan, placement=bare, parallelism=()), old, new)
