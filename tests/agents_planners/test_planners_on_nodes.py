"""Planners that divide GPUs, on domains of several nodes."""

from dataclasses import replace

import numpy as np
import pytest
from local_servers import agent_of
from sharing import gpus
from strategies import unit_workload

from agents.decision.problem import PlanningProblem
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.case import DomainCase
from agents.planners.rules.atlas import atlas
from agents.planners.rules.zero import zero1
from agents.planners.sailor.sailor import sailor_search
from des import Domain, Nodes, Topology, simulate
from des.costs.collectives import ring_all_reduce_s


def on_pairs(num_gpus: int, *, card_bytes_per_s: float, memory_bytes: float = 1e30) -> Domain:
    """GPUs in nodes of two with a card each; inside a node they have 100 bytes/s."""
    nodes = Nodes(
        gpus_per_node=2,
        nics_per_node=2,
        nic_bandwidth_bytes_per_s=card_bytes_per_s,
        nic_latency_s=0.0,
    )
    domain = gpus("A", num_gpus, (100.0, 0.0))
    return replace(domain, gpu_memory_bytes=memory_bytes, nodes=nodes)


def problem_on(domain: Domain, *, num_microbatches: int = 8) -> PlanningProblem:
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=num_microbatches, message_bytes=4.0)
    return PlanningProblem(topology=Topology.of([domain], []), workload=workload, schedule="1f1b")


@pytest.mark.parametrize("memory_bytes", [1e30, 20.0])
@pytest.mark.parametrize("card_bytes_per_s", [100.0, 1e-2])
def test_no_planner_puts_a_tensor_group_over_two_nodes(memory_bytes, card_bytes_per_s):
    problem = problem_on(on_pairs(8, card_bytes_per_s=card_bytes_per_s, memory_bytes=memory_bytes))
    rng = np.random.default_rng(0)
    plans = [atlas(problem, rng), zero1(problem, rng)]
    plans.append(sailor_search(problem, is_whole_domain=False).plan)
    for plan in plans:
        shared = plan.parallelism_of(0)
        assert shared is None or shared.tensor <= 2
        simulate(problem.topology, problem.workload, plan)  # accepts it


def test_sailor_counts_the_cards_in_its_estimate():
    """Eight replicas of 2 layers: 8 x 6 / 8 s, and 4 bytes in a ring of 8 GPUs on 4 nodes.

    Both cards of a node are as quick as its wires, so the ring is that of one level.
    """
    found = sailor_search(problem_on(on_pairs(8, card_bytes_per_s=50.0)), is_whole_domain=False)
    (chosen,) = found.plan.parallelism
    assert (chosen.tensor, chosen.data, chosen.pipeline) == (1, 8, 1)
    assert found.estimate_s == pytest.approx(6.0 + ring_all_reduce_s(4.0, 8, 100.0))


def test_tensor_groups_of_local_plans_keep_to_nodes():
    job = TrainingJob(model="llama2_7b", num_sequences=4)
    domain = replace(on_pairs(8, card_bytes_per_s=1e9), gpu_memory_bytes=80e9)
    case = DomainCase(domain=domain, job=job, first_layer=0, num_layers=32)

    assert all(
        each.parallelism.tensor <= 2 and each.is_by_rule
        for each in agent_of().alternatives(case).values()
    )
