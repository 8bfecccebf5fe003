"""Local decisions of all domains of a plan: made to agree, and put into it."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.bound_plans import border_joint, domain_with, joint_of
from agents.hi_ppo.local.case import DomainCase, LocalCase, ServersCase, knows_servers
from agents.hi_ppo.local.chains import Chains, borders_of
from agents.hi_ppo.local.decide import LocalAgent, LocalDecision, SharedSetting
from agents.hi_ppo.local.device_times import device_times
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Parallelism,
    Plan,
    Topology,
    Workload,
)
from des.devices.gpus import GpuTopology
from des.schedules import has_pace
from des.world.domain_load import IDLE, DomainLoad

MOST_SETTINGS = 2
"""Settings of microbatches and recomputation that whole pipelines are compared under."""

_PACED = "zb_h1_4x"
"""Schedule of chains in place of one that looks at times."""


def cases_of(
    topology: Topology,
    plan: Plan,
    job: TrainingJob,
    gpus: Sequence[GpuTopology | None],
    *,
    loads: Sequence[DomainLoad] = (),
    corrections: Corrections = NO_CORRECTIONS,
) -> tuple[DomainCase, ...]:
    """Return the local cases of a plan's domains, from the input on.

    Every other domain counts as one stage; `settle` puts that right. ``gpus`` and ``loads`` are one
    a domain of the topology; no loads means none. Domains of several servers have the GPUs of one;
    those whose GPUs are not known one by one have None. The latter, and servers that are more or
    larger than `agents.hi_ppo.local.case.knows_servers` allows, are decided by rule.

    Raises
    ------
    ValueError
        If the plan visits a domain twice, has several replicas, or a count does not match.
    """
    stages = plan.placement.stages
    used = [stage.domain for stage in stages]
    if plan.replicas or len(set(used)) < len(used):
        raise ValueError(
            "local cases: plan must have one replica that visits each domain once, "
            f"got {len(plan.placements)} with domains {used}"
        )
    for name, given in (("gpus", gpus), ("loads", loads or gpus)):
        if len(given) != topology.num_domains:
            raise ValueError(
                f"local cases: {name} must hold one for each of {topology.num_domains} domains, "
                f"got {len(given)}"
            )
    cases = (
        DomainCase(
            domain=topology.domains[stage.domain],
            job=job,
            first_layer=stage.first_layer,
            num_layers=stage.num_layers,
            stages_before=stage.index,
            stages_behind=len(stages) - 1 - stage.index,
            schedule=plan.schedule,
            load=loads[stage.domain] if loads else IDLE,
            corrections=corrections,
        )
        for stage in stages
    )
    known = (gpus[stage.domain] for stage in stages)
    return tuple(
        case if own is None else with_gpus(case, own)
        for case, own in zip(cases, known, strict=True)
    )


def with_gpus(case: DomainCase, gpus: GpuTopology) -> LocalCase | ServersCase:
    """Return the case of a domain with its GPUs one by one, or those of each of its servers.

    Bindings are searched for servers that are equally far from each other alone.
    """
    nodes = case.domain.nodes
    is_level = nodes is None or not nodes.has_priced_racks
    own = {field.name: getattr(case, field.name) for field in fields(DomainCase)}
    num_known = gpus.num_gpus * case.domain.num_nodes
    if is_level and num_known == case.domain.num_gpus and knows_servers(case.domain, gpus):
        return LocalCase(gpus=gpus, **own)
    return ServersCase(server=gpus, **own)


def agree(
    alternatives: Sequence[Mapping[SharedSetting, LocalDecision]],
) -> tuple[SharedSetting, ...]:
    """Return the settings that all domains can have, the one of the fastest slowest domain first.

    Of equals the one of the smaller microbatches comes first.

    Raises
    ------
    InfeasiblePlacementError
        If the domains have no setting in common.
    """
    if not alternatives:
        raise ValueError("agree: alternatives must hold at least one domain, got none")
    common = set(alternatives[0]).intersection(*alternatives[1:])
    if not common:
        each = "; ".join(", ".join(map(str, sorted(one))) for one in alternatives)
        raise InfeasiblePlacementError(f"agree: the domains have no setting in common: {each}")

    def slowest_s(setting: SharedSetting) -> float:
        return max(one[setting].seconds_per_sequence for one in alternatives)

    return tuple(sorted(sorted(common), key=slowest_s))


class Settlement(NamedTuple):
    """Decisions of all domains, from the input on, and the time of an iteration as one chain."""

    time_s: float
    decisions: tuple[LocalDecision, ...]


def settle(
    agent: LocalAgent, topology: Topology, plan: Plan, cases: Sequence[DomainCase]
) -> tuple[LocalDecision, ...]:
    """Decide for all domains of a pipeline, from the input on: the quickest of `settlements`."""
    found = settlements(agent, topology, plan, cases)
    return min(found, key=lambda one: one.time_s).decisions


def settlements(
    agent: LocalAgent, topology: Topology, plan: Plan, cases: Sequence[DomainCase]
) -> list[Settlement]:
    """Return decisions of all domains of a pipeline that fit together.

    All have the same microbatches and recomputation, one of the first `MOST_SETTINGS` of `agree`
    that fit. Under each there are two: what is best for each domain if all other stages are as
    slow as its own; and what is left of that if domains change their plans one after the other as
    long as that makes the whole chain of devices quicker (`agents.hi_ppo.local.chains`).

    Raises
    ------
    InfeasiblePlacementError
        If no setting fits all domains; the message is that of the best one.
    UnreachableError
        If no links lead over a border of the plan.
    """
    alternatives = [agent.alternatives(case) for case in cases]
    failure: InfeasiblePlacementError | None = None
    found = list[Settlement]()
    for setting in agree(alternatives):
        try:
            menus = _menus(agent, cases, [one[setting] for one in alternatives])
        except InfeasiblePlacementError as error:
            failure = failure or error
            continue
        found += _alone_and_together(topology, plan, cases, menus)
        if len(found) == 2 * MOST_SETTINGS:
            break
    if not found:
        assert failure is not None
        raise failure
    return found


def _menus(
    agent: LocalAgent, cases: Sequence[DomainCase], assumed: Sequence[LocalDecision]
) -> list[tuple[LocalDecision, ...]]:
    """Plans of each domain under one setting, by number of devices; the best alone comes last.

    A device holds the more microbatches the more devices are behind it, so domains are looked at
    from the output on, each as if those behind had the most devices that they may choose.
    """
    setting, menus = assumed[0].setting, list[tuple[LocalDecision, ...]]()
    devices = [one.parallelism.pipeline for one in assumed]
    for place in range(len(cases) - 1, -1, -1):
        case = replace(
            cases[place],
            stages_before=sum(devices[:place]),
            stages_behind=sum(devices[place + 1 :]),
        )
        menu = agent.menu(case, setting)
        alone = min(menu, key=lambda one: one.seconds_per_sequence)
        devices[place] = alone.parallelism.pipeline
        menus.append(menu[: menu.index(alone) + 1])
    return menus[::-1]


def _alone_and_together(
    topology: Topology,
    plan: Plan,
    cases: Sequence[DomainCase],
    menus: Sequence[Sequence[LocalDecision]],
) -> tuple[Settlement, Settlement]:
    """Choose from menus what is best for each domain, and what makes the whole pipeline quick."""
    job, corrections = cases[0].job, cases[0].corrections
    workload = workload_of(job, menus[0][:1])
    times = [
        [device_times(case, one.plan.option, one.binding) for one in menu]
        for case, menu in zip(cases, menus, strict=True)
    ]
    domains = [stage.domain for stage in plan.placement.stages]
    chains = Chains(
        times,
        borders_of(topology, domains, workload.message_bytes, corrections),
        schedule=plan.schedule if has_pace(plan.schedule) else _PACED,
        num_microbatches=workload.num_microbatches,
        overhead_s=corrections.message_overhead_s,
    )
    alone = tuple(len(menu) - 1 for menu in menus)
    chosen, found_s = chains.quickest(alone)
    of_choice = [
        tuple(menu[index] for menu, index in zip(menus, choice, strict=True))
        for choice in (alone, chosen)
    ]
    (alone_s,) = chains.times_s([alone]).tolist()
    return Settlement(alone_s, of_choice[0]), Settlement(found_s, of_choice[1])


def with_local(plan: Plan, decisions: Sequence[LocalDecision], num_domains: int) -> Plan:
    """Return the plan with the parallelism of its domains, one decision a stage from the input on.

    Domains that have no layers get a parallelism that means nothing.

    Raises
    ------
    ValueError
        If the decisions are not one per stage, or differ in what domains must have in common.
    """
    stages = plan.placement.stages
    _check_agreement(decisions, len(stages))
    parallelism = [Parallelism()] * num_domains
    for stage, decision in zip(stages, decisions, strict=True):
        parallelism[stage.domain] = decision.parallelism
    return replace(plan, parallelism=tuple(parallelism))


def workload_of(job: TrainingJob, decisions: Sequence[LocalDecision]) -> Workload:
    """Return the job in the microbatches, and with the recomputation, that domains agreed on."""
    _check_agreement(decisions, len(decisions))
    return job.workload(decisions[0].microbatch_size, decisions[0].recomputation)


def bound_topology(
    topology: Topology, plan: Plan, cases: Sequence[DomainCase], decisions: Sequence[LocalDecision]
) -> Topology:
    """Return the topology with the inner networks and network cards that the bindings have.

    `des` knows one figure per domain: that of the slowest tensor group, whose rings are the most
    traffic; without tensor groups that of the slowest group of replicas or pair of partners. Cards
    are those of the border between servers where they are shared worst.
    """
    domains = list(topology.domains)
    stages = plan.placement.stages
    for stage, case, decision in zip(stages, cases, decisions, strict=True):
        shape = decision.parallelism
        places = np.array(decision.binding).reshape(shape.pipeline, shape.data, shape.tensor)
        joints = [joint_of(case, group) for group in _busiest_groups(shape, places)]
        if isinstance(case, LocalCase):
            borders = (border_joint(case, *pair) for pair in pairwise(places))
            shares = [each.card_share for each in (*joints, *borders) if each is not None]
            joints = [each._replace(card_share=min(shares)) for each in joints]
        if joints:
            domains[stage.domain] = domain_with(domains[stage.domain], min(joints))
    return replace(topology, domains=tuple(domains))


def _busiest_groups(shape: Parallelism, places: np.ndarray) -> list[np.ndarray]:
    if shape.tensor > 1:
        return list(places.reshape(-1, shape.tensor))
    groups = [group for device in places for group in device.T if shape.data > 1]
    pairs = places.reshape(shape.pipeline, -1)
    return groups + [
        pair for one in range(1, shape.pipeline) for pair in pairs[one - 1 : one + 1].T
    ]


def _check_agreement(decisions: Sequence[LocalDecision], num_stages: int) -> None:
    settings = {decision.setting for decision in decisions}
    if len(decisions) != num_stages or len(settings) != 1:
        raise ValueError(
            f"local decisions: must be {num_stages}, one per stage, of one setting; "
            f"got {len(decisions)} with {', '.join(map(str, sorted(settings))) or 'none'}"
        )
