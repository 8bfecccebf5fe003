"""Local plans by rule, for domains of more GPUs than the local agent knows one by one."""

import pytest

from agents.hi_ppo.local.by_rule import alternatives_by_rule, decide_by_rule
from agents.hi_ppo.local.case import DomainCase, TrainingJob
from agents.hi_ppo.local.decide import SharedSetting
from agents.hi_ppo.local.together import with_gpus, with_local
from des import Domain, InfeasiblePlacementError, Placement, Plan, Topology, domain_memory
from des.devices.gpus import GpuTopology, LinkClass
from des.world.domain_load import DomainLoad

JOB = TrainingJob(model="llama2_7b", num_sequences=8)
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


def case_of(num_gpus: int, memory_bytes: float = 80e9, **changes: object) -> DomainCase:
    domain = domain_of(num_gpus, memory_bytes)
    return DomainCase(domain=domain, job=JOB, first_layer=0, num_layers=32, **changes)


@pytest.mark.parametrize(
    ("num_gpus", "tensor", "pipeline"), [(12, 4, 3), (16, 8, 2), (9, 1, 9), (10, 2, 5), (64, 8, 8)]
)
def test_tensor_groups_are_as_large_as_divide_the_gpus(num_gpus, tensor, pipeline):
    for decision in alternatives_by_rule(case_of(num_gpus)).values():
        shape = decision.parallelism
        assert (shape.tensor, shape.data, shape.pipeline) == (tensor, 1, pipeline)
        assert decision.binding == tuple(range(num_gpus))
        assert decision.is_by_rule


def test_a_pipeline_has_at_most_a_device_a_layer():
    decision = decide_by_rule(case_of(11), FLASH)
    few = DomainCase(domain=domain_of(11), job=JOB, first_layer=3, num_layers=4)

    assert decision.parallelism.pipeline == 11
    assert decide_by_rule(few, FLASH).parallelism.pipeline == 4


def test_the_memory_check_is_that_of_des():
    """The least memory that the rule takes is what `des` says that its plan requires."""
    decision = decide_by_rule(case_of(16), FLASH)
    world = Topology(domains=(domain_of(16),), links=())
    plan = Plan(placement=Placement.contiguous([0], [32]), schedule="1f1b")
    workload = JOB.workload(1, "flash")
    (memory,) = domain_memory(world, workload, with_local(plan, [decision], 1))
    needed_bytes = memory.required_bytes / 16

    assert decide_by_rule(case_of(16, needed_bytes * 1.000001), FLASH).parallelism.tensor == 8
    with pytest.raises(
        InfeasiblePlacementError, match=r"domain Big: no local plan with 1 seq.* 32"
    ):
        decide_by_rule(case_of(16, needed_bytes * 0.2), FLASH)


def test_a_domain_without_room_is_named_with_what_is_missing():
    with pytest.raises(InfeasiblePlacementError, match=r"domain Big: .* got [\d.]+ times as much"):
        alternatives_by_rule(case_of(12, 80e9, load=DomainLoad(memory_occupancy=0.999)))


def test_a_case_with_known_gpus_is_the_same_case():
    gpus = GpuTopology.alike(8, LinkClass(bandwidth_bytes_per_s=50e9, latency_s=5e-7))
    case = case_of(8)
    known = with_gpus(case, gpus)

    assert known.free_gpus == case.free_gpus == tuple(range(8))
    assert (known.domain, known.job, known.num_layers) == (case.domain, case.job, case.num_layers)
