"""Plans that are bound to the GPUs of servers, on three small sites, for tests."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from agents.decision.bound_plan import BoundPlan
from agents.search.bind import PlanBinder
from agents.trainers.trainer import Trainer
from des import Domain, Link, Parallelism, Placement, Plan, Topology, Workload, build_workload
from des.world.nodes import Nodes

NODES = Nodes(gpus_per_node=8, nics_per_node=8, nic_bandwidth_bytes_per_s=50e9, nic_latency_s=5e-6)


def site(name: str, num_gpus: int = 16, nodes: Nodes | None = NODES) -> Domain:
    """A site of GPUs of 1e15 FLOP/s and 80 GB."""
    return Domain(
        name=name,
        num_gpus=num_gpus,
        gpu_peak_flops_per_s=1e15,
        gpu_memory_bytes=80e9,
        gpu_memory_bandwidth_bytes_per_s=3e12,
        attainable_fraction=0.5,
        intra_bandwidth_bytes_per_s=450e9,
        intra_latency_s=3e-6,
        nodes=nodes,
    )


def sites(*domains: Domain) -> Topology:
    """Sites, by default A, B and C of two servers each, joined by links of 1.25 GB/s."""
    return joined(domains or (site("A"), site("B"), site("C")), 1.25e9, latency_s=0.01)


def joined(
    domains: Sequence[Domain], bandwidth_bytes_per_s: float, latency_s: float = 1e-3
) -> Topology:
    """Sites with equal links between every two."""
    figures = {"bandwidth_bytes_per_s": bandwidth_bytes_per_s, "latency_s": latency_s}
    ends = permutations(domains, 2)
    links = [Link(source=one.name, target=two.name, **figures) for one, two in ends]
    return Topology.of(domains, links)


def job(**changes: object) -> Workload:
    """Llama 2 7B in 32 microbatches of one sequence, gradients in FP32."""
    settings: dict[str, object] = {"num_microbatches": 32, "gradient_precision": "fp32"}
    return build_workload("llama2_7b", **(settings | changes))  # type: ignore[arg-type]


def bound_plan(placement: str = "0*16,1*16", each: str = "8x1x2", **changes: object) -> Plan:
    """A plan of Megatron-LM: the same division of GPUs in all of three sites."""
    names = ("A", "B", "C")
    plan = Plan(
        placement=Placement.parse(placement, names),
        parallelism=(Parallelism.parse(each),) * 3,
        sends="blocking",
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


def bind_plan(topology: Topology, workload: Workload, plan: Plan, trainer: Trainer) -> BoundPlan:
    """Complete a plan of domains to the quickest one that a trainer runs."""
    return PlanBinder(topology=topology, workload=workload, trainer=trainer).bind(plan)
