"""Local plans by rule, for domains of more GPUs than the local agent knows one by one."""

from dataclasses import replace
from itertools import product

import pytest
from local_reference import seconds_per_sequence
from local_servers import agent_of, shapes_of

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.agreement import with_gpus, with_local
from agents.hi_ppo.local.case import DomainCase, ServersCase
from agents.hi_ppo.local.decide import SharedSetting
from agents.hi_ppo.local.options import LocalOption
from des import (
    Domain,
    InfeasiblePlacementError,
    Nodes,
    Parallelism,
    Placement,
    Plan,
    Topology,
    domain_memory,
)
from des.compiled.simulate import simulate_compiled
from des.devices.gpu_ports import LinkClass
from des.devices.gpus import GpuTopology
from des.devices.partitions import best_partition
from des.devices.presets import simulated
from des.world.domain_load import DomainLoad

JOB = TrainingJob(model="llama2_7b", num_sequences=8)
AGENT = agent_of()
FLASH = SharedSetting(microbatch_size=1, recomputation="flash")


def domain_of(num_gpus: int, memory_bytes: float = 80e9) -> Domain:
    return Domain(
        name="Big",
        num_gpus=num_gpus,
        gpu_peak_flops_per_s=120e12,
        gpu_memory_bytes=memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=1600e9,
        attainable_fraction=0.5,
        intra_bandwidth_bytes_per_s=50e9,
        intra_latency_s=5e-7,
    )


def in_servers(num_gpus: int, gpus_per_node: int = 8) -> DomainCase:
    nodes = Nodes(
        gpus_per_node=gpus_per_node,
        nics_per_node=4,
        nic_bandwidth_bytes_per_s=25e9,
        nic_latency_s=5e-6,
    )
    domain = replace(domain_of(num_gpus), nodes=nodes)
    return DomainCase(domain=domain, job=JOB, first_layer=0, num_layers=32)


def case_of(num_gpus: int, memory_bytes: float = 80e9, **changes: object) -> DomainCase:
    domain = domain_of(num_gpus, memory_bytes)
    return DomainCase(domain=domain, job=JOB, first_layer=0, num_layers=32, **changes)


@pytest.mark.parametrize("num_gpus", [9, 12, 16, 64])
def test_the_quickest_shape_that_fits_is_chosen(num_gpus):
    """Of all numbers of devices, those too that are not looked at."""
    case = case_of(num_gpus)
    decision = AGENT.alternatives(case)[FLASH]

    for tensor, pipeline in product((1, 2, 4, 8), range(1, 33)):
        if tensor * pipeline <= num_gpus:
            shape = Parallelism(tensor=tensor, pipeline=pipeline)
            option = LocalOption(parallelism=shape, microbatch_size=1, recomputation="flash")
            found_s = seconds_per_sequence(case, option, tuple(range(shape.num_gpus)))
            fits = world_fits(case, shape)
            assert not fits or decision.seconds_per_sequence <= found_s * (1 + 1e-12)
    assert decision.is_by_rule


def world_fits(case: DomainCase, shape: Parallelism) -> bool:
    """Whether `des` has room for all layers of a job in a world of this domain alone."""
    world = Topology(domains=(case.domain,), links=())
    placement = Placement.contiguous([0], [case.num_layers])
    plan = Plan(placement=placement, schedule="1f1b", parallelism=(shape,))
    (memory,) = domain_memory(world, case.job.workload(1, "flash"), plan)
    return memory.required_bytes <= memory.capacity_bytes


@pytest.mark.parametrize("shape", shapes_of(case_of(8), 4), ids=str)
def test_gpus_that_are_alike_take_as_long_as_if_known_one_by_one(shape):
    alike = GpuTopology.alike(8, LinkClass(bandwidth_bytes_per_s=50e9, latency_s=5e-7))
    option = LocalOption(parallelism=shape, microbatch_size=4, recomputation="full")
    case, binding = case_of(8, stages_behind=2), tuple(range(shape.num_gpus))

    assert seconds_per_sequence(case, option, binding) == pytest.approx(
        seconds_per_sequence(with_gpus(case, alike), option, binding), rel=1e-12
    )


@pytest.mark.parametrize("num_gpus", [16, 64, 1024])
def test_the_time_over_servers_is_near_that_of_the_simulator(num_gpus):
    """The formula sees neither bubbles of unequal devices nor what hides behind passes."""
    case = in_servers(num_gpus)
    for decision in AGENT.alternatives(case).values():
        plan = Plan(
            placement=Placement.contiguous([0], [32]),
            schedule="1f1b",
            parallelism=(decision.parallelism,),
        )
        world = Topology(domains=(case.domain,), links=())
        found = simulate_compiled(
            world, JOB.workload(decision.microbatch_size, decision.recomputation), plan
        )
        assert decision.seconds_per_sequence * 8 == pytest.approx(found.makespan_s, rel=0.03)


def test_tensor_groups_of_a_server_have_its_best_rings():
    """NVLinks join 0 and 3, and others in pairs; a pair without them is four times as slow.

    Nine servers are more than the local agent decides on.
    """
    cube = GpuTopology.of_server(simulated("dgx-1-v100"))
    case = with_gpus(in_servers(72), cube)
    shape = Parallelism(tensor=2, pipeline=8)
    option = LocalOption(parallelism=shape, microbatch_size=1, recomputation="flash")
    pairs = best_partition(cube, 2)

    assert isinstance(case, ServersCase)
    rings = [cube.bandwidth_bytes_per_s[one][other] for one, other in pairs]
    assert rings == [max(map(max, cube.bandwidth_bytes_per_s))] * 4
    slow = replace(cube, bandwidth_bytes_per_s=tuple((10e9,) * 8 for _ in range(8)))
    times_s = [
        seconds_per_sequence(with_gpus(in_servers(72), server), option, tuple(range(16)))
        for server in (cube, slow)
    ]
    assert times_s[0] < times_s[1]


def test_servers_that_are_no_nodes_or_not_free_are_refused():
    cube = GpuTopology.of_server(simulated("dgx-1-v100"))
    with pytest.raises(ValueError, match=r"domain Big: server .* got 8 and no nodes"):
        with_gpus(case_of(16), cube)
    with pytest.raises(ValueError, match=r"domain Big: free must be all 8 GPUs .* got 7"):
        with_gpus(in_servers(16), replace(cube, free=tuple(range(7))))


def test_tensor_groups_keep_to_servers():
    assert all(
        decision.parallelism.tensor <= 4
        for decision in AGENT.alternatives(in_servers(12, gpus_per_node=4)).values()
    )


def test_a_pipeline_has_at_most_a_device_a_layer():
    few = DomainCase(domain=domain_of(64), job=JOB, first_layer=3, num_layers=4)

    assert AGENT.alternatives(few)[FLASH].parallelism.pipeline <= 4


def test_the_memory_check_is_that_of_des():
    """The least memory that the rule takes is what `des` says that its plan requires."""
    decision = AGENT.alternatives(case_of(16))[FLASH]
    world = Topology(domains=(domain_of(16),), links=())
    plan = Plan(placement=Placement.contiguous([0], [32]), schedule="1f1b")
    workload = JOB.workload(1, "flash")
    (memory,) = domain_memory(world, workload, with_local(plan, [decision], 1))
    needed_bytes = memory.required_bytes / 16

    again = AGENT.alternatives(case_of(16, needed_bytes * 1.000001))[FLASH]
    assert again.parallelism == decision.parallelism
    with pytest.raises(
        InfeasiblePlacementError, match=r"domain Big: no local plan for 32 .* 1 seq.* got [\d.]+ GB"
    ):
        AGENT.menu(case_of(16, needed_bytes * 0.2), FLASH)


def test_a_menu_has_the_quickest_plan_of_each_number_of_devices():
    case = case_of(12)
    menu = AGENT.menu(case, FLASH)

    assert [one.parallelism.pipeline for one in menu] == sorted(
        {shape.pipeline for shape in shapes_of(case, 1) if world_fits(case, shape)}
    )
    assert AGENT.alternatives(case)[FLASH].plan in [one.plan for one in menu]


def test_a_domain_without_room_is_named_with_what_is_missing():
    with pytest.raises(
        InfeasiblePlacementError, match=r"domain Big: .* got [\d.]+ GB, [\d.]+ GB too many"
    ):
        AGENT.alternatives(case_of(12, 80e9, load=DomainLoad(memory_occupancy=0.999)))


def test_a_case_with_known_gpus_is_the_same_case():
    gpus = GpuTopology.alike(8, LinkClass(bandwidth_bytes_per_s=50e9, latency_s=5e-7))
    case = case_of(8)
    known = with_gpus(case, gpus)

    assert known.free_gpus == case.free_gpus == tuple(range(8))
    assert (known.domain, known.job, known.num_layers) == (case.domain, case.job, case.num_layers)
