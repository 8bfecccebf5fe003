"""Domains of several servers, as the tests of the local level need them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from local_reference import reference_times

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.agreement import workload_of
from agents.hi_ppo.local.case import DomainCase, LocalCase
from agents.hi_ppo.local.chains import Chains, borders_of
from agents.hi_ppo.local.decide import LocalAgent, LocalDecision
from agents.hi_ppo.local.device_times import device_times
from agents.hi_ppo.local.options import LocalOption, is_worth_while, shapes_over
from agents.hi_ppo.local.policy import LocalArchitecture
from agents.hi_ppo.local.training_policy import LocalPolicy
from des import NO_CORRECTIONS, Domain, Link, Nodes, Parallelism, Plan, Topology
from des.devices.figures_file import shipped_link_figures
from des.devices.gpus import GpuTopology
from des.devices.presets import simulated
from des.devices.server import Server


def agent_of(seed: int = 0) -> LocalAgent:
    """An agent whose policy is not trained."""
    policy = LocalPolicy(LocalArchitecture(), torch.Generator().manual_seed(seed))
    return LocalAgent(policy=policy)


def shapes_of(case: DomainCase, microbatch_size: int) -> list[Parallelism]:
    """Ways to share a domain's layers, whatever memory they need."""
    domain = case.domain
    shapes = shapes_over(domain.num_gpus, microbatch_size, domain.nodes, case.num_layers)
    counts = np.array([shape.pipeline for shape in shapes])
    kept = is_worth_while(counts, case.num_layers)
    return [shape for shape, is_kept in zip(shapes, kept, strict=True) if is_kept]


def domain_on(server: Server, num_servers: int, **changes: object) -> Domain:
    """Equal servers with cards of 10 GB/s and 5 us from GPU to GPU."""
    figures = {
        "gpus_per_node": server.num_gpus,
        "nics_per_node": len(server.near_nics),
        "nic_bandwidth_bytes_per_s": 10e9,
        "nic_latency_s": 5e-6,
        "server": server,
    }
    nodes = Nodes(**(figures | changes))
    return Domain(
        name="here",
        num_gpus=num_servers * server.num_gpus,
        gpu_peak_flops_per_s=300e12,
        gpu_memory_bytes=80e9,
        gpu_memory_bandwidth_bytes_per_s=2e12,
        attainable_fraction=0.5,
        intra_bandwidth_bytes_per_s=100e9,
        intra_latency_s=3e-6,
        nodes=nodes,
    )


def servers_case(
    kind: str | Server,
    num_servers: int,
    *,
    nodes: dict[str, object] | None = None,
    **changes: object,
) -> LocalCase:
    """A whole model of 40 layers on servers of a kind."""
    server = simulated(kind) if isinstance(kind, str) else kind
    figures = {
        "domain": domain_on(server, num_servers, **(nodes or {})),
        "gpus": GpuTopology.of_server(server, figures=shipped_link_figures()),
        "job": TrainingJob(model="llama2_13b", num_sequences=32),
        "first_layer": 0,
        "num_layers": 40,
    }
    return LocalCase(**(figures | changes))


def chain_on(kinds: dict[str, int]) -> Topology:
    """A domain of each kind of server, with links between every two."""
    domains = [
        replace(domain_on(simulated(kind), count), name=kind) for kind, count in kinds.items()
    ]
    links = [
        Link(source=one, target=other, bandwidth_bytes_per_s=1e9, latency_s=0.01)
        for one in kinds
        for other in kinds
        if one != other
    ]
    return Topology.of(domains, links)


def chain_s(
    topology: Topology,
    plan: Plan,
    cases: Sequence[DomainCase],
    decisions: Sequence[LocalDecision],
) -> float:
    """Time of an iteration of local plans as one chain of devices."""
    workload = workload_of(cases[0].job, decisions)
    times = [
        [reference_times(case, one.plan.option, one.binding)]
        for case, one in zip(cases, decisions, strict=True)
    ]
    domains = [stage.domain for stage in plan.placement.stages]
    chains = Chains(
        times,
        borders_of(topology, domains, workload.message_bytes, NO_CORRECTIONS),
        schedule=plan.schedule,
        num_microbatches=workload.num_microbatches,
    )
    return float(chains.times_s([(0,) * len(cases)])[0])


def assert_same_times(case: DomainCase, option: LocalOption, gpus: tuple[int, ...]) -> None:
    """Times of devices are those of the formulas of `des`, whatever computes them."""
    quick, slow = (one(case, option, gpus) for one in (device_times, reference_times))
    for found, expected in zip(quick, slow, strict=True):
        assert found == pytest.approx(expected, rel=1e-12)
