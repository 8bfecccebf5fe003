"""Plans in worlds whose domains come and go: domains are known by their names."""

from collections.abc import Sequence
from dataclasses import replace

from agents.trainers.plan_checks import domains_in_use
from des import Plan
from des.plan.parallelism import UNSHARED


def plan_on_domains(plan: Plan, old: Sequence[str], new: Sequence[str]) -> Plan | None:
    """Return the same plan where domains have other numbers; None if it used one that is gone.

    Examples
    --------
    >>> from des import Placement
    >>> plan = Plan(placement=Placement.parse("2*3,0*1"))
    >>> str(plan_on_domains(plan, ["East", "West", "North"], ["North", "East"]).placement)
    '0*3,1*1'
    >>> plan_on_domains(plan, ["East", "West", "North"], ["West", "East"]) is None
    True
    """
    number = {name: index for index, name in enumerate(new)}
    if any(old[domain] not in number for domain in domains_in_use(plan)):
        return None
    first, *others = (
        replace(one, domain_of_layer=tuple(number[old[domain]] for domain in one.domain_of_layer))
        for one in plan.placements
    )
    degrees = dict(zip(old, plan.parallelism, strict=False))
    return replace(
        plan,
        placement=first,
        replicas=tuple(others),
        parallelism=tuple(degrees.get(name, UNSHARED) for name in new) if degrees else (),
    )
