"""Worlds and pipelines on which programs of rivals were run, and what those programs chose."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from des import Placement, Plan, build_workload, read_topology
from des.base.command import UsageError
from des.schedules import Border, Pipeline
from scenarios.reproduce.cases import (
    CasePart,
    Count,
    NonNegativeNumber,
    PositiveNumber,
    existing_cases,
    read_form,
)

PIPELINES_FILE = "crosspipe_pipelines.json"


class ChosenPlan(CasePart):
    """A plan as ``DOMAIN:LAYERS,... SCHEDULE``."""

    plan: Annotated[str, Field(pattern=r"^\d+:\d+(,\d+:\d+)* \w+$")]


class ChosenOrders(CasePart):
    """Iteration time of orders that were made for a placement. [s]"""

    placement_of: Annotated[str, Field(pattern=r"^\d+:\d+(,\d+:\d+)* \w+$")]
    iteration_s_whole_passes: PositiveNumber


class Originals(CasePart):
    """Choices of the original programs; one that was not run is absent."""

    sailor: ChosenPlan | None = None
    dtfm: ChosenPlan | None = None
    crosspipe_greedy: ChosenOrders | None = None


class RivalJob(CasePart):
    """The job of a world."""

    model: str
    num_layers: Count
    microbatches: Count
    microbatch_size: Count
    sequence_length: Count
    originals: Originals


class PipelineRow(CasePart):
    """A pipeline with a device a stage, in any unit of time, and the original makespan.

    ``memory_in_activations`` is the memory of each device in microbatches of a stage.
    """

    name: str
    num_microbatches: Count
    forward: Annotated[tuple[PositiveNumber, ...], Field(min_length=1)]
    input_gradient: tuple[PositiveNumber, ...]
    weight_gradient: tuple[PositiveNumber, ...]
    latency: tuple[NonNegativeNumber, ...]
    transfer: tuple[NonNegativeNumber, ...]
    activation_bytes: PositiveNumber
    weight_input_bytes: NonNegativeNumber
    memory_in_activations: tuple[PositiveNumber, ...]
    original_makespan: PositiveNumber

    @property
    def pipeline(self) -> Pipeline:
        """The same as what a schedule is made for."""
        num_stages = len(self.forward)
        borders = tuple(
            Border(latency_s=latency, transfer_s=transfer)
            for latency, transfer in zip(self.latency, self.transfer, strict=True)
        )
        return Pipeline(
            num_microbatches=self.num_microbatches,
            device_of_stage=tuple(range(num_stages)),
            forward_s=self.forward,
            input_gradient_s=self.input_gradient,
            weight_gradient_s=self.weight_gradient,
            down=borders,
            up=borders,
            activation_bytes=(self.activation_bytes,) * num_stages,
            weight_input_bytes=(self.weight_input_bytes,) * num_stages,
            memory_bytes=tuple(self.activation_bytes * held for held in self.memory_in_activations),
        )


class PipelineFile(CasePart):
    """All pipelines."""

    rows: Annotated[tuple[PipelineRow, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalWorld:
    """A world with its job, and what the original programs chose for it."""

    name: str
    problem: PlanningProblem
    originals: Originals


def read_worlds(folder: Path) -> tuple[RivalWorld, ...]:
    """Read all ``world_*.yaml`` of a folder with the jobs of their names.

    Raises
    ------
    UsageError
        If there is no such folder, no world in it, or a world without its job.
    ValueError
        If a file is not of its form.
    """
    paths = sorted(existing_cases(folder, kind="folder").glob("world_*.yaml"))
    if not paths:
        raise UsageError(f"cases: {folder} must hold files world_*.yaml, got none")
    return tuple(_world(path) for path in paths)


def read_pipelines(folder: Path) -> tuple[PipelineRow, ...]:
    """Read the pipelines of a folder.

    Raises
    ------
    UsageError
        If the folder has no such file.
    ValueError
        If it is not of its form.
    """
    return read_form(folder / PIPELINES_FILE, PipelineFile).rows


def plan_of(text: str) -> Plan:
    """Read ``DOMAIN:LAYERS,... SCHEDULE``.

    Examples
    --------
    >>> plan_of("1:3,0:2 1f1b_2x").placement.domain_of_layer
    (1, 1, 1, 0, 0)
    """
    runs, schedule = text.split()
    return Plan(placement=Placement.parse(runs.replace(":", "*")), schedule=schedule)


def text_of(plan: Plan) -> str:
    """Write a plan as `plan_of` reads it, without its parallelism."""
    runs = ",".join(f"{stage.domain}:{stage.num_layers}" for stage in plan.placement.stages)
    return f"{runs} {plan.schedule}"


def _world(path: Path) -> RivalWorld:
    job = read_form(path.with_suffix(".json"), RivalJob)
    workload = build_workload(
        job.model,
        num_layers=job.num_layers,
        num_microbatches=job.microbatches,
        microbatch_size=job.microbatch_size,
        sequence_length=job.sequence_length,
    )
    problem = PlanningProblem(topology=read_topology(path), workload=workload, schedules=DEPTHS)
    return RivalWorld(name=path.stem, problem=problem, originals=job.originals)
