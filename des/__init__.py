"""Simulation of large-model training across data centres joined by slow, moving WAN links."""

from des.background import BackgroundLoad
from des.corrections import NO_CORRECTIONS, Corrections
from des.dynamics import (
    DYNAMICS,
    STEADY,
    Dynamics,
    Law,
    LinkState,
    MarkovModulated,
    Movement,
    OrnsteinUhlenbeck,
    Product,
    Replay,
)
from des.engine import simulate, simulate_orders
from des.epoch import EpochResult, simulate_epoch
from des.exposure import exposed_communication_s
from des.feasibility import check_job_fits, check_memory, domain_memory
from des.generator import PlaneWorlds
from des.memory import DomainMemory, InfeasiblePlacementError
from des.memory_timeline import MemoryTimeline, memory_timeline
from des.migration import migration_s, moved_bytes
from des.models import ALIASES, ARCHITECTURES, build_workload
from des.placement import Placement, Stage
from des.plan import GradientExchange, Parallelism, Plan, cross_domain_bytes
from des.prices import MissingPriceError, TrainingCost, cost_of
from des.result import IterationResult, LinkUse, Span, StageUse, Transfer
from des.schedules import DEFAULT_SCHEDULE, SCHEDULES, DeadlockError, Operation
from des.synchronisation import EVERY_STEP, DiLoCo, StreamingDiLoCo
from des.topology import Domain, Link, Topology, UnreachableError
from des.topology_files import read_topology
from des.topology_writer import write_topology
from des.training_history import TrainingHistory
from des.training_run import run_training
from des.training_settings import EpochView, TrainingRun
from des.transport import Transport
from des.weather import StarvationError
from des.workload import Layer, Workload

__all__ = [
    "ALIASES",
    "ARCHITECTURES",
    "DEFAULT_SCHEDULE",
    "DYNAMICS",
    "EVERY_STEP",
    "NO_CORRECTIONS",
    "SCHEDULES",
    "STEADY",
    "BackgroundLoad",
    "Corrections",
    "DeadlockError",
    "DiLoCo",
    "Domain",
    "DomainMemory",
    "Dynamics",
    "EpochResult",
    "EpochView",
    "GradientExchange",
    "InfeasiblePlacementError",
    "IterationResult",
    "Law",
    "Layer",
    "Link",
    "LinkState",
    "LinkUse",
    "MarkovModulated",
    "MemoryTimeline",
    "MissingPriceError",
    "Movement",
    "Operation",
    "OrnsteinUhlenbeck",
    "Parallelism",
    "Placement",
    "Plan",
    "PlaneWorlds",
    "Product",
    "Replay",
    "Span",
    "Stage",
    "StageUse",
    "StarvationError",
    "StreamingDiLoCo",
    "Topology",
    "TrainingCost",
    "TrainingHistory",
    "TrainingRun",
    "Transfer",
    "Transport",
    "UnreachableError",
    "Workload",
    "build_workload",
    "check_job_fits",
    "check_memory",
    "cost_of",
    "cross_domain_bytes",
    "domain_memory",
    "exposed_communication_s",
    "memory_timeline",
    "migration_s",
    "moved_bytes",
    "read_topology",
    "run_training",
    "simulate",
    "simulate_epoch",
    "simulate_orders",
    "write_topology",
]
