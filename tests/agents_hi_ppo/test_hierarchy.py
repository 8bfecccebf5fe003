"""Both levels together: complete plans that are valid, and what stays when none is."""

from dataclasses import replace

import pytest
import torch
from small_policies import JOB, THREE, coordinator, situation_on, slowed, with_memory, without

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.coordinator import NoValidPlanError
from agents.hi_ppo.hierarchy import CompleteDecision, Hierarchy
from agents.hi_ppo.local.agreement import cases_of
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.local.policy import LocalArchitecture
from agents.hi_ppo.local.training_policy import LocalPolicy
from agents.hi_ppo.validation import require_free, require_valid
from des import (
    InfeasiblePlacementError,
    Placement,
    Plan,
    Topology,
    check_memory,
    domain_memory,
    simulate,
)
from des.devices.gpus import GpuTopology
from des.devices.servers import server
from des.world.domain_load import DomainLoad

TRAINING = TrainingJob.of(JOB)
GPUS = [server(name) for name in ("nvswitch", "pcie_pairs", "pcie_two_numa")]


class Clock:
    """One second further at each call."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        self.now_s += 1.0
        return self.now_s


def hierarchy(**changes: object) -> Hierarchy:
    policy = LocalPolicy(LocalArchitecture(), torch.Generator().manual_seed(0))
    own = coordinator(moves=changes.pop("moves", False), **changes.pop("across", {}))
    return Hierarchy(own, LocalAgent(policy=policy), changes.pop("gpus", GPUS), **changes)


def with_free(gpus: GpuTopology, *free: int) -> GpuTopology:
    return replace(gpus, free=free)


def loads(*occupancies: float) -> tuple[DomainLoad, ...]:
    return tuple(DomainLoad(memory_occupancy=share) for share in occupancies)


def inner(found: CompleteDecision) -> dict[str, tuple]:
    return {name: (own.plan.option, own.binding) for name, own in found.local.items()}


def test_a_complete_plan_fits_and_runs_with_the_work_of_the_job():
    situation = situation_on(loads=loads(0.1, 0.0, 0.2))
    found = hierarchy().decide(situation, TRAINING)

    assert not found.is_fallback
    used = [THREE.domains[stage.domain].name for stage in found.plan.placement.stages]
    assert list(found.local) == used
    assert found.plan.placement == found.decision.plan.placement
    for name, own in found.local.items():
        assert found.plan.parallelism[THREE.index_of[name]] == own.parallelism
        assert len(set(own.binding)) == own.parallelism.num_gpus
    assert found.workload.tokens_per_iteration == JOB.tokens_per_iteration
    assert simulate(found.topology, found.workload, found.plan).fits_memory
    needed = domain_memory(found.topology, found.workload, found.plan)
    for memory, load in zip(needed, situation.loads, strict=True):
        assert memory.required_bytes <= memory.capacity_bytes * (1.0 - load.memory_occupancy)


def test_the_response_is_the_sum_of_its_parts():
    """The clock is read at the start, behind each level and at the end."""
    found = hierarchy(clock=Clock()).decide(situation_on(), TRAINING)

    assert found.response_s == {
        "inter_domain": 1.0,
        "intra_domain": 1.0,
        "validation": 1.0,
        "total": 3.0,
    }
    assert found.decision.response_s["inter_domain"] > 0.0


def test_equal_questions_get_equal_answers():
    one, other = (hierarchy(moves=True).decide(situation_on(), TRAINING) for _ in range(2))

    assert (one.plan, one.topology, inner(one)) == (other.plan, other.topology, inner(other))


def test_a_complete_last_plan_is_the_same_plan_across_domains():
    """The local parts of the plan in force make no other plan of it."""
    both = hierarchy()
    first = both.decide(situation_on(), TRAINING)
    again = both.decide(situation_on(epoch=1, last_plan=first.plan), TRAINING)

    assert first.plan.parallelism
    assert again.decision.level == "nothing"
    assert again.plan == first.plan
    assert both.counts.decisions == 2


def test_rebinding_keeps_the_placement_and_decides_nothing_across_domains():
    both = hierarchy()
    first = both.decide(situation_on(), TRAINING)
    changed = next(iter(first.local))
    gpus = with_free(dict(zip(THREE.index_of, GPUS, strict=True))[changed], 0, 1, 4, 5)

    found = both.rebind(situation_on(), TRAINING, gpus={changed: gpus})

    assert found.plan.placement == first.plan.placement
    assert found.decision.level == "nothing"
    assert set(found.local[changed].binding) <= {0, 1, 4, 5}
    assert found.response_s["inter_domain"] == 0.0
    assert (both.counts.rebindings, both.counts.decisions) == (1, 1)
    assert both.across.counts.decisions == 1
    check_memory(found.topology, found.workload, found.plan)


def test_without_a_plan_nothing_can_be_bound():
    with pytest.raises(ValueError, match="decide must have placed layers"):
        hierarchy().rebind(situation_on(), TRAINING)


def test_gpus_belong_to_domains_by_name():
    """Without Central, West is the second domain, and still has its own GPUs."""
    both = hierarchy()
    both.decide(situation_on(), TRAINING)
    left = without(THREE, "Central")
    taken = {"West": with_free(GPUS[2], 2, 3), "East": with_free(GPUS[0], 6, 7)}
    found = both.decide(situation_on(left, epoch=1), TRAINING)
    after = both.rebind(situation_on(left, epoch=1), TRAINING, gpus=taken)

    assert set(found.local) <= {"East", "West"}
    for name, own in after.local.items():
        assert set(own.binding) <= set(taken[name].free)
    others = [replace(left.domains[0], name="North"), left.domains[1]]
    links = [
        replace(
            link, **{end: "North" for end in ("source", "target") if getattr(link, end) == "East"}
        )
        for link in left.links
    ]
    with pytest.raises(ValueError, match="got none for North"):
        both.decide(situation_on(Topology.of(others, links)), TRAINING)


def test_as_many_gpus_as_domains_are_needed():
    both = hierarchy()
    with pytest.raises(ValueError, match="gpus must hold one for each of the domains East, West"):
        both.decide(situation_on(without(THREE, "Central")), TRAINING)


# What stays when a complete plan cannot be used.


def test_a_complete_plan_that_is_refused_leaves_the_last_one_in_force():
    """Everything but the first complete plan is refused; the links change so that others come."""
    allowed: list[Plan] = []

    def validate(situation, plan):
        require_valid(situation, plan)
        if allowed and plan not in allowed:
            raise InfeasiblePlacementError(f"plan {plan.placement} is not allowed")

    both = hierarchy(validate=validate)
    first = both.decide(situation_on(), TRAINING)
    allowed.append(first.plan)
    quick = slowed(THREE, 100.0)
    found = both.decide(situation_on(quick, base=THREE, epoch=1, last_plan=first.plan), TRAINING)

    assert found.is_fallback
    assert found.decision.is_fallback
    assert found.decision.level == "nothing"
    assert found.plan == first.plan
    assert found.topology.links == quick.links
    assert (both.counts.decisions, both.counts.fallbacks) == (2, 1)


def test_a_level_that_finds_nothing_leaves_the_last_one_in_force():
    """Across domains nothing is allowed any more; the complete plan still fits."""
    allowed = True

    def validate(situation, plan):
        if not allowed:
            raise InfeasiblePlacementError("plan: not any more")

    both = hierarchy(across={"validate": validate})
    first = both.decide(situation_on(), TRAINING)
    allowed = False
    found = both.decide(situation_on(epoch=1, last_plan=first.plan), TRAINING)

    assert found.is_fallback
    assert found.plan == first.plan
    assert both.counts.fallbacks == 1


def test_without_any_plan_the_shortfall_is_named():
    small = situation_on(with_memory(THREE, 1e9))
    with pytest.raises(InfeasiblePlacementError, match=r"domain \w+ must hold at most 8.0 GB, got"):
        hierarchy().decide(small, TRAINING)


def test_a_domain_whose_gpus_are_taken_is_named():
    """One GPU is left of eight: what the domain was thought to hold does not fit."""
    job = replace(TRAINING, model="llama2_13b")
    few = [with_free(gpus, 0) for gpus in GPUS]
    with pytest.raises(InfeasiblePlacementError, match=r"domain \w+: no local plan .*GB"):
        hierarchy(gpus=few).decide(situation_on(workload=job.workload(1, "flash")), job)


def test_where_the_last_plan_can_be_used_no_longer_either_both_reasons_are_given():
    """Its GPUs have been taken since, and those that are left are too few."""
    job = replace(TRAINING, model="llama2_13b")
    situation = situation_on(workload=job.workload(1, "flash"))
    both = hierarchy()
    both.decide(situation, job)
    few = {name: with_free(gpus, 7) for name, gpus in zip(THREE.index_of, GPUS, strict=True)}

    with pytest.raises(
        NoValidPlanError, match=r"neither the new plan \(.*\) nor the last complete"
    ):
        both.rebind(situation, job, gpus=few)


def test_a_binding_to_taken_gpus_is_refused():
    plan = Plan(placement=Placement.parse("0*32"), schedule="1f1b")
    policy = LocalPolicy(LocalArchitecture(), torch.Generator().manual_seed(0))
    (case,) = cases_of(THREE, plan, TRAINING, GPUS)
    decision = LocalAgent(policy=policy).decide(case)
    require_free(case, decision)
    kept = [gpu for gpu in range(8) if gpu != decision.binding[0]]
    less = replace(case, gpus=with_free(case.gpus, *kept))

    with pytest.raises(InfeasiblePlacementError, match=rf"got {decision.binding[0]} too"):
        require_free(less, decision)
