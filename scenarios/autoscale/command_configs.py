"""Flags of the commands that scale a fleet."""

from dataclasses import dataclass
from pathlib import Path

from des.base.flags import JsonFlag, option
from des.serving.arbiters import ARBITERS
from scenarios.autoscale.fleet_config import FleetConfig
from scenarios.frame.outputs import OutputFlags

PROG = "python -m scenarios.autoscale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(FleetConfig):
    """Flags of the command."""

    policy: tuple[str, ...] = option(("static", "hpa", "sla"), "policies, one row each")
    advisory: str | None = option(None, "policy whose decisions are recorded and not applied")
    checkpoint: Path | None = option(
        None, "trained policy, for rl (default: the shipped one)", is_file=True
    )
    learn: bool = option(False, "whether rl goes on learning from its decisions")
    out: Path = option(Path("runs/autoscale"), "folder for the files")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesConfig(OutputFlags):
    """Flags of `queues`."""

    runs: int = option(10, "runs of each queue")
    num_requests: int = option(200_000, "requests of a run")
    seed: int = option(0, "seed of the runs")
    out: Path | None = option(None, "folder for rows, picture and report (default: none)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedConfig(JsonFlag):
    """Settings of `speed`: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityConfig(FleetConfig):
    """Flags of `capacity`."""

    attainment: float = option(0.99, "share of requests within the SLO")
    instances: tuple[int, ...] = option((1, 2, 4, 8), "sizes of a mixed pool, one row each")
    splits: tuple[str, ...] = option((), "instances of prompt and token pools such as 2+1, a row")
    out: Path | None = option(None, "folder for rows, picture and report (default: none)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedConfig(FleetConfig):
    """Flags of `shared`."""

    servers: int = option(8, "servers of the cluster")
    gpus_per_server: int = option(8, "GPUs of a server")
    arbiter: str = option("max_min", f"rule that grants servers: {', '.join(ARBITERS)}")
    policy: str = option("predictive", "policy of applications that name none")
    training_jobs: int = option(0, "jobs that train on the same servers (0: none)")
    training_jobs_per_hour: float = option(60.0, "rate at which these jobs arrive")
    training_policy: str = option(
        "priority", "ordering of the jobs; applications have their priority, jobs 0 (see job_queue)"
    )
    training_preemption: str = option(
        "worst_first", "rule by which jobs are suspended for instances (see job_queue)"
    )
    training_quantum: float = option(60.0, "time for which a job runs before it gives way [s]")
    training_restart: float = option(30.0, "time of a restart after a suspension [s]")
    checkpoint: Path | None = option(
        None, "trained policy, for rl (default: the shipped one)", is_file=True
    )
    out: Path = option(Path("runs/applications"), "folder for the files")
