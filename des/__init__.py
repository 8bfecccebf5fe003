"""Simulation of large-model training across data centres joined by slow, moving WAN links."""

from typing import TYPE_CHECKING

from des.base.lazy import lazy_names

if TYPE_CHECKING:
    from des.costs.feasibility import check_job_fits, check_memory, domain_memory
    from des.costs.memory import DomainMemory, InfeasiblePlacementError
    from des.dynamics import (
        DYNAMICS,
        STEADY,
        Law,
        LinkState,
        MarkovModulated,
        Movement,
        OrnsteinUhlenbeck,
        Product,
        Replay,
        UniformLaw,
    )
    from des.dynamics.link_course import StarvationError
    from des.engine.result import IterationResult, LinkUse, Span, StageUse, Transfer
    from des.job.model_presets import ALIASES, ARCHITECTURES
    from des.job.models import build_workload
    from des.job.workload import Layer, Workload
    from des.plan.corrections import NO_CORRECTIONS, Corrections
    from des.plan.decoupled import DecoupledDiLoCo
    from des.plan.gradient_exchange import GradientExchange
    from des.plan.parallelism import Parallelism
    from des.plan.placement import Placement, Stage, cross_domain_bytes
    from des.plan.plan import Plan
    from des.plan.synchronisation import EVERY_STEP, DiLoCo, StreamingDiLoCo
    from des.program.lowering import lower
    from des.program.moves import moved_bytes
    from des.schedules import DEFAULT_SCHEDULE, SCHEDULES, DeadlockError, Operation
    from des.simulation.iteration import simulate
    from des.simulation.migration import migration_s
    from des.simulation.shared_links import ConcurrentJob, simulate_together
    from des.training.background import BackgroundLoad
    from des.training.epoch import EpochResult, simulate_epoch
    from des.training.training_history import TrainingHistory
    from des.training.training_run import run_training
    from des.training.training_settings import EpochView, TrainingRun
    from des.views.exposure import exposed_communication_s
    from des.views.memory_timeline import MemoryTimeline, memory_timeline
    from des.views.prices import MissingPriceError, TrainingCost, cost_of
    from des.world.domain import Domain
    from des.world.files.topology_writer import write_topology
    from des.world.nodes import Nodes
    from des.world.topology import Link, Topology, UnreachableError
    from des.world.transport import Transport
    from des.worlds.generator import PlaneWorlds
    from des.worlds.reading import read_topology

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
    "ConcurrentJob",
    "Corrections",
    "DeadlockError",
    "DecoupledDiLoCo",
    "DiLoCo",
    "Domain",
    "DomainMemory",
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
    "Nodes",
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
    "UniformLaw",
    "UnreachableError",
    "Workload",
    "build_workload",
    "check_job_fits",
    "check_memory",
    "cost_of",
    "cross_domain_bytes",
    "domain_memory",
    "exposed_communication_s",
    "lower",
    "memory_timeline",
    "migration_s",
    "moved_bytes",
    "read_topology",
    "run_training",
    "simulate",
    "simulate_epoch",
    "simulate_together",
    "write_topology",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "des.costs.feasibility": "check_job_fits check_memory domain_memory",
        "des.costs.memory": "DomainMemory InfeasiblePlacementError",
        "des.dynamics": "DYNAMICS STEADY Law LinkState MarkovModulated Movement "
        "OrnsteinUhlenbeck Product Replay UniformLaw",
        "des.dynamics.link_course": "StarvationError",
        "des.simulation.iteration": "simulate",
        "des.simulation.migration": "migration_s",
        "des.program.lowering": "lower",
        "des.program.moves": "moved_bytes",
        "des.engine.result": "IterationResult LinkUse Span StageUse Transfer",
        "des.simulation.shared_links": "ConcurrentJob simulate_together",
        "des.job.model_presets": "ALIASES ARCHITECTURES",
        "des.job.models": "build_workload",
        "des.job.workload": "Layer Workload",
        "des.plan.corrections": "NO_CORRECTIONS Corrections",
        "des.plan.decoupled": "DecoupledDiLoCo",
        "des.plan.placement": "Placement Stage cross_domain_bytes",
        "des.plan.parallelism": "Parallelism",
        "des.plan.gradient_exchange": "GradientExchange",
        "des.plan.plan": "Plan",
        "des.plan.synchronisation": "EVERY_STEP DiLoCo StreamingDiLoCo",
        "des.schedules": "DEFAULT_SCHEDULE SCHEDULES DeadlockError Operation",
        "des.training.background": "BackgroundLoad",
        "des.training.epoch": "EpochResult simulate_epoch",
        "des.training.training_history": "TrainingHistory",
        "des.training.training_run": "run_training",
        "des.training.training_settings": "EpochView TrainingRun",
        "des.views.exposure": "exposed_communication_s",
        "des.views.memory_timeline": "MemoryTimeline memory_timeline",
        "des.views.prices": "MissingPriceError TrainingCost cost_of",
        "des.world.domain": "Domain",
        "des.world.files.topology_writer": "write_topology",
        "des.world.nodes": "Nodes",
        "des.world.topology": "Link Topology UnreachableError",
        "des.world.transport": "Transport",
        "des.worlds.generator": "PlaneWorlds",
        "des.worlds.reading": "read_topology",
    },
    rooms="base clock cluster compiled costs devices dynamics engine job plan program schedules "
    "serving simulation spot training views world worlds",
)
