"""Simulation of large-model training across data centres joined by slow, moving WAN links."""

from des.corrections import NO_CORRECTIONS, Corrections
from des.dynamics import STEADY, Dynamics, Movement
from des.engine import simulate, simulate_orders
from des.memory import (
    DomainMemory,
    InfeasiblePlacementError,
    check_job_fits,
    check_memory,
    domain_memory,
)
from des.models import ALIASES, ARCHITECTURES, build_workload
from des.placement import Placement, Plan, Stage, cross_domain_bytes
from des.result import IterationResult, LinkUse, Span, StageUse, Transfer
from des.schedules import DEFAULT_SCHEDULE, SCHEDULES, DeadlockError, Operation
from des.topology import Domain, Link, Topology, UnreachableError
from des.topology_files import read_topology
from des.workload import Layer, Workload

__all__ = [
    "ALIASES",
    "ARCHITECTURES",
    "DEFAULT_SCHEDULE",
    "NO_CORRECTIONS",
    "SCHEDULES",
    "STEADY",
    "Corrections",
    "DeadlockError",
    "Domain",
    "DomainMemory",
    "Dynamics",
    "InfeasiblePlacementError",
    "IterationResult",
    "Layer",
    "Link",
    "LinkUse",
    "Movement",
    "Operation",
    "Placement",
    "Plan",
    "Span",
    "Stage",
    "StageUse",
    "Topology",
    "Transfer",
    "UnreachableError",
    "Workload",
    "build_workload",
    "check_job_fits",
    "check_memory",
    "cross_domain_bytes",
    "domain_memory",
    "read_topology",
    "simulate",
    "simulate_orders",
]
