"""Bound plans on a world as it is now, whose domains, GPUs and links may be others."""

from dataclasses import replace

from agents.decision.bound_plan import BoundPlan
from agents.decision.other_domains import plan_on_domains
from agents.judge.step_times import mean_step
from agents.trainers.plan_checks import domains_in_use
from des import Topology


def place_on(bound: BoundPlan, topology: Topology) -> BoundPlan:
    """Return a bound plan, and the time of its step, on a world as it is now.

    Raises
    ------
    ValueError
        If it cannot run there: a domain is gone, GPUs or memory are too few, or no links lead.
    """
    old, new = list(bound.topology.index_of), list(topology.index_of)
    plan = plan_on_domains(bound.plan, old, new)
    if plan is None:
        gone = [old[site] for site in domains_in_use(bound.plan) if old[site] not in new]
        raise ValueError(f"plan: needs {', '.join(gone)}, which the world does not have now")
    step_s, _ = mean_step(topology, bound.workload, plan, bound.corrections)
    return replace(bound, topology=topology, plan=plan, step_s=step_s)
