"""Decisions of several domains: agreed by hand, and fitting by the memory of des."""

from dataclasses import replace

import numpy as np
import pytest
from local_servers import agent_of
from test_local_options import domain_of_gpus

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.agreement import (
    agree,
    bound_topology,
    cases_of,
    settle,
    with_local,
    workload_of,
)
from agents.hi_ppo.local.decide import LocalDecision, SharedSetting
from des import (
    InfeasiblePlacementError,
    Link,
    Parallelism,
    Placement,
    Plan,
    Topology,
    domain_memory,
    simulate,
)
from des.devices.servers import draw_server, server
from des.world.domain_load import DomainLoad

SMALL, LARGE = (SharedSetting(microbatch_size=size, recomputation="flash") for size in (1, 4))


def decision(setting: SharedSetting, seconds: float, **changes: object) -> LocalDecision:
    figures = {
        "parallelism": Parallelism(),
        "microbatch_size": setting.microbatch_size,
        "recomputation": setting.recomputation,
        "binding": (0,),
        "seconds_per_sequence": seconds,
        "response_s": 0.0,
    }
    return LocalDecision(**(figures | changes))


def chain(num_domains: int, **changes: object) -> Topology:
    names = [f"d{index}" for index in range(num_domains)]
    links = [
        Link(source=one, target=other, bandwidth_bytes_per_s=1e9, latency_s=0.01)
        for one in names
        for other in names
        if one != other
    ]
    return Topology.of([replace(domain_of_gpus(**changes), name=name) for name in names], links)


def test_domains_agree_on_what_makes_the_slowest_fastest():
    """Small microbatches: 3 s at worst; large ones 4 s, though one domain likes them better."""
    one = {SMALL: decision(SMALL, 3.0), LARGE: decision(LARGE, 1.0)}
    other = {SMALL: decision(SMALL, 2.0), LARGE: decision(LARGE, 4.0)}

    assert agree([one, other]) == (SMALL, LARGE)
    assert agree([one]) == (LARGE, SMALL)


def test_of_equals_the_smaller_microbatches_come_first():
    assert agree([{LARGE: decision(LARGE, 1.0), SMALL: decision(SMALL, 1.0)}]) == (SMALL, LARGE)


def test_domains_without_a_common_setting_are_refused():
    with pytest.raises(InfeasiblePlacementError, match="the domains have no setting in common: 1 "):
        agree([{SMALL: decision(SMALL, 1.0)}, {LARGE: decision(LARGE, 1.0)}])
    with pytest.raises(ValueError, match="alternatives must hold at least one domain"):
        agree([])


@pytest.mark.parametrize("seed", range(8))
def test_settled_domains_fit_by_the_memory_of_des(seed):
    """Random servers, loads, splits and depths; an untrained policy splits domains at will."""
    rng = np.random.default_rng(seed)
    topology = chain(4, gpu_memory_bytes=float(rng.choice((80e9, 141e9))))
    job = TrainingJob(model="llama2_13b", num_sequences=32)
    order = rng.permutation(4)[:3].tolist()
    plan = Plan(
        placement=Placement.contiguous(order, [10, 12, 18]),
        schedule=("1f1b", "1f1b_2x", "1f1b_4x", "gpipe")[seed % 4],
    )
    gpus = [draw_server(rng) for _ in range(4)]
    loads = [DomainLoad(memory_occupancy=float(rng.uniform(0.0, 0.3))) for _ in range(4)]
    cases = cases_of(topology, plan, job, gpus, loads=loads)
    decisions = settle(agent_of(seed), topology, plan, cases)
    local = with_local(plan, decisions, 4)
    workload = workload_of(job, decisions)

    assert workload.tokens_per_iteration == job.workload(1, "flash").tokens_per_iteration
    memories = domain_memory(topology, workload, local)
    for memory, load in zip(memories, loads, strict=True):
        room = memory.capacity_bytes * (1.0 - load.memory_occupancy)
        assert memory.required_bytes <= room * (1.0 + 1e-12)
    bound = bound_topology(topology, plan, cases, decisions)
    assert simulate(bound, workload, local).fits_memory


def test_the_last_domain_is_decided_before_those_that_depend_on_it():
    """A device holds a microbatch for each device behind it, so counts have to be exact."""
    topology = chain(2)
    job = TrainingJob(model="llama2_7b", num_sequences=32)
    plan = Plan(placement=Placement.contiguous([1, 0], [16, 16]))
    cases = cases_of(topology, plan, job, [server("pcie_two_numa")] * 2)

    assert [case.domain.name for case in cases] == ["d1", "d0"]
    assert [case.stages_behind for case in cases] == [1, 0]
    first, last = settle(agent_of(0), topology, plan, cases)
    exact = replace(cases[0], stages_behind=last.parallelism.pipeline)
    menu = agent_of(0).menu(exact, first.setting)
    assert first.plan in [one.plan for one in menu]


def test_a_plan_gets_the_parallelism_of_its_domains():
    plan = Plan(placement=Placement.contiguous([2, 0], [3, 5]))
    shapes = [Parallelism(tensor=4), Parallelism(tensor=2, pipeline=2)]
    decisions = [decision(SMALL, 1.0, parallelism=shape) for shape in shapes]

    assert with_local(plan, decisions, 3).parallelism == (shapes[1], Parallelism(), shapes[0])


def test_decisions_that_do_not_agree_are_refused():
    plan = Plan(placement=Placement.contiguous([0, 1], [1, 1]))

    with pytest.raises(ValueError, match="must be 2, one per stage, of one setting; got 2 "):
        with_local(plan, [decision(SMALL, 1.0), decision(LARGE, 1.0)], 2)
    with pytest.raises(ValueError, match="must be 2, one per stage, of one setting; got 1 with"):
        with_local(plan, [decision(SMALL, 1.0)], 2)


def test_a_bound_domain_has_the_network_of_its_slowest_tensor_group():
    """Pairs over bridges have 80 GB/s; a pair of GPUs of two processors 10 GB/s."""
    topology = chain(1)
    plan = Plan(placement=Placement.contiguous([0], [32]))
    job = TrainingJob(model="llama2_7b", num_sequences=32)
    cases = cases_of(topology, plan, job, [server("pcie_pairs")])

    def bandwidth(shape: Parallelism, binding: tuple[int, ...]) -> float:
        decided = decision(SMALL, 1.0, parallelism=shape, binding=binding)
        bound = bound_topology(topology, plan, cases, [decided])
        return bound.domains[0].intra_bandwidth_bytes_per_s

    assert bandwidth(Parallelism(tensor=2, pipeline=2), (0, 1, 4, 5)) == 80e9
    assert bandwidth(Parallelism(tensor=2, pipeline=2), (0, 1, 3, 5)) == 10e9
    assert bandwidth(Parallelism(pipeline=2), (1, 2)) == 20e9
    assert bandwidth(Parallelism(data=2), (0, 1)) == 80e9
    assert bandwidth(Parallelism(), (0,)) == domain_of_gpus().intra_bandwidth_bytes_per_s


def test_plans_that_have_no_local_cases_are_refused():
    topology = chain(2)
    job = TrainingJob(model="llama2_7b", num_sequences=32)
    there_and_back = Plan(placement=Placement.contiguous([0, 1, 0], [10, 12, 10]))
    plain = Plan(placement=Placement.contiguous([0, 1], [16, 16]))

    with pytest.raises(ValueError, match="visits each domain once"):
        cases_of(topology, there_and_back, job, [server("nvswitch")] * 2)
    with pytest.raises(ValueError, match="gpus must hold one for each of 2 domains, got 1"):
        cases_of(topology, plain, job, [server("nvswitch")])
    with pytest.raises(ValueError, match="loads must hold one for each of 2 domains, got 1"):
        cases_of(topology, plain, job, [server("nvswitch")] * 2, loads=[DomainLoad()])


def test_domains_that_cannot_hold_their_layers_are_named():
    topology = chain(2, gpu_memory_bytes=10e9)
    job = TrainingJob(model="llama2_7b", num_sequences=32)
    plan = Plan(placement=Placement.contiguous([0, 1], [1, 31]))
    cases = cases_of(topology, plan, job, [server("nvswitch")] * 2)

    with pytest.raises(InfeasiblePlacementError, match="domain d1: no local plan for 31 layers"):
        settle(agent_of(0), topology, plan, cases)
