"""Small untrained policies, and situations of the shipped worlds to ask them in."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from agents.decision.situation import Situation
from agents.hi_ppo.coordinator import Coordinator
from agents.hi_ppo.moves.move_network import MoveNetwork
from agents.hi_ppo.moves.move_policy import MoveArchitecture, MovePolicy
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.placement_checkpoint import placement_payload
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies, TrainedRange
from agents.judge.look_ahead import LookAhead
from agents.ppo.checkpoint import save_checkpoint
from des import Placement, Plan, Topology, Workload, build_workload, read_topology
from des.plan.replacement import Replacement

THREE = replace(read_topology("east_central_west"), movement=None)
JOB = build_workload("llama2_7b")


def placement_policy(seed: int = 0, *, width: int = 16) -> PlacementPolicy:
    """A small one."""
    generator = torch.Generator().manual_seed(seed)
    sizes = PlacementArchitecture(width=width, edge_width=8, num_rounds=1)
    return PlacementPolicy(sizes, generator).eval()


def save_placement(path: Path, policy: PlacementPolicy) -> None:
    """A file of a placement policy alone, as a training's checkpoint also holds it."""
    save_checkpoint(path, placement_payload(policy))


def move_policy(seed: int = 0) -> MovePolicy:
    """A small one."""
    generator = torch.Generator().manual_seed(seed)
    return MovePolicy(network=MoveNetwork(MoveArchitecture(hidden_sizes=(8,)), generator))


@cache
def policies(seed: int = 0, *, moves: bool = True) -> Policies:
    """Both, as if trained on the shipped world of three domains."""
    return Policies(
        placement=placement_policy(seed),
        moves=move_policy(seed) if moves else None,
        trained_range=TrainedRange.of([(THREE, JOB)]),
        training={"seed": seed},
    )


def coordinator(seed: int = 0, *, moves: bool = True, **changes: object) -> Coordinator:
    """A coordinator of small policies that judges few plans."""
    proposer = Proposer(placement_policy(seed), look_ahead=LookAhead(budget=300))
    return Coordinator(proposer, move_policy(seed) if moves else None, **changes)


def situation_on(
    topology: Topology = THREE, workload: Workload = JOB, **changes: object
) -> Situation:
    """The first decision on a world at base figures."""
    given = Situation(
        topology=topology,
        base=topology,
        workload=workload,
        epoch=0,
        epoch_s=300.0,
        replacement=Replacement(restart_s=1.0),
    )
    return replace(given, **changes)


def without(topology: Topology, *names: str) -> Topology:
    """The network without some domains and their links."""
    domains = [domain for domain in topology.domains if domain.name not in names]
    links = [link for link in topology.links if not {link.source, link.target} & set(names)]
    return Topology.of(domains, links, topology.dynamics)


def with_memory(topology: Topology, gpu_memory_bytes: float) -> Topology:
    """The network with other GPUs."""
    domains = tuple(
        replace(domain, gpu_memory_bytes=gpu_memory_bytes) for domain in topology.domains
    )
    return replace(topology, domains=domains)


def slowed(topology: Topology, factor: float, *ends: str) -> Topology:
    """The network with the bandwidths of links at these domains, or all, at a part."""
    links = tuple(
        replace(link, bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * factor)
        if not ends or {link.source, link.target} & set(ends)
        else link
        for link in topology.links
    )
    return replace(topology, links=links)


def plans_of(*texts: str, schedule: str = "1f1b_4x") -> list[Plan]:
    """Plans of placements such as ``0*16,1*16``."""
    return [Plan(placement=Placement.parse(text), schedule=schedule) for text in texts]


def drawn(seed: int) -> Topology:
    """The world of three with every link at a part of its bandwidth of its own."""
    rng = np.random.default_rng(seed)
    links = tuple(
        replace(link, bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * rng.uniform(0.1, 1.0))
        for link in THREE.links
    )
    return replace(THREE, links=links)
