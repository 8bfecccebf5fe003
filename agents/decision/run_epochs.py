"""Run a scheduler through a draw of a world: its decisions, and their times and costs."""

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from agents.decision.frozen_network import freeze_topologies
from agents.decision.levels import LEVELS, MoveLevel, level_of
from agents.decision.situation import TIME_ONLY, Decision, Preference, Scheduler, Situation
from agents.decision.world import DecisionWorld, bytes_per_token, equal_work_s
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Plan,
    Topology,
    Workload,
    simulate_epoch,
)
from des.compiled.simulate import simulate_compiled
from des.costs.feasibility import check_memory
from des.costs.outer_state import has_outer_state

MeanStep = Callable[[Topology, Workload, Plan, Corrections], tuple[float, float]]
"""Time [s] of a step of a plan on a network, and bytes that it sends over WAN links, both means
over the time between two exchanges of its copies."""


class _Figures(NamedTuple):
    """Figures of an epoch, see `CourseRow`."""

    iteration_s: float
    change_s: float
    num_iterations: float
    moved_bytes: float
    cost_bytes: float
    utilisation: float
    fits_memory: bool


class CourseError(ValueError):
    """A scheduler decided what cannot be done; the message says who, when and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseRow:
    """One epoch.

    Attributes
    ----------
    level
        Level of the change from the last plan, by `agents.decision.levels.level_of`.
    iteration_s
        Of one iteration, the change of plan left out. [s]
    change_s
        For which the training stood still to change its plan. [s]
    num_iterations
        Iterations in what the change leaves of the epoch; work owed, a negative number, where it
        takes longer than the epoch.
    moved_bytes
        Model state that was sent for the change. [bytes]
    cost_bytes
        Bytes an iteration sends over WAN links, the change left out. [bytes]
    utilisation
        Useful FLOPs over the peak of all GPUs of all domains times the epoch.
    decision_s
        Wall time of the decision, as seen from outside. [s]
    response_s
        Wall time by part of the scheduler, as it says itself. [s]
    """

    epoch: int
    plan: Plan
    level: MoveLevel
    iteration_s: float
    change_s: float
    num_iterations: float
    moved_bytes: float
    cost_bytes: float
    utilisation: float
    fits_memory: bool
    is_fallback: bool
    decision_s: float
    response_s: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class CourseResult:
    """All epochs of a draw, and their sums."""

    world: str
    draw_seed: int
    scheduler: str
    rows: tuple[CourseRow, ...]
    epoch_s: float
    iterations_per_epoch: int
    tokens_per_iteration: int

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plan of each epoch."""
        return tuple(row.plan for row in self.rows)

    @cached_property
    def total_s(self) -> float:
        """Time of ``iterations_per_epoch`` of each epoch, by the clock, see `equal_work_s`. [s]"""
        work = len(self.rows) * self.iterations_per_epoch
        return equal_work_s(len(self.rows) * self.epoch_s, work, self.num_iterations)

    @cached_property
    def num_iterations(self) -> float:
        """Iterations of all epochs."""
        return sum(row.num_iterations for row in self.rows)

    @cached_property
    def change_s(self) -> float:
        """Part of ``total_s`` in which the plan was changed. [s]"""
        share = sum(row.change_s for row in self.rows) / (len(self.rows) * self.epoch_s)
        return share * self.total_s

    @cached_property
    def utilisation(self) -> float:
        """Useful FLOPs over the peak of all GPUs of all domains times that of the epochs."""
        return sum(row.utilisation for row in self.rows) / len(self.rows)

    @cached_property
    def bytes_per_token(self) -> float:
        """Bytes over WAN links, moved model state included, per trained token. [bytes]"""
        sent = sum(row.num_iterations * row.cost_bytes + row.moved_bytes for row in self.rows)
        return bytes_per_token(sent, self.num_iterations * self.tokens_per_iteration)

    @cached_property
    def moves(self) -> dict[MoveLevel, int]:
        """Number of epochs that changed the plan, by level; the first one does not count."""
        counts = Counter(row.level for row in self.rows[1:])
        return {level: counts[level] for level in LEVELS}

    @property
    def num_fallbacks(self) -> int:
        """Decisions for which the scheduler had no valid plan of its own."""
        return sum(row.is_fallback for row in self.rows)


def epoch_situation(
    world: DecisionWorld,
    topology: Topology,
    epoch: int,
    last_plan: Plan | None,
    *,
    preference: Preference = TIME_ONLY,
    corrections: Corrections = NO_CORRECTIONS,
) -> Situation:
    """Return what a scheduler sees at the start of an epoch, ``topology`` standing still."""
    return Situation(
        topology=topology,
        base=world.topology,
        workload=world.workload,
        epoch=epoch,
        epoch_s=world.epoch_s,
        replacement=world.replacement,
        last_plan=last_plan,
        preference=preference,
        corrections=corrections,
    )


def run_course(
    world: DecisionWorld,
    draw_seed: int,
    scheduler: Scheduler,
    *,
    corrections: Corrections = NO_CORRECTIONS,
    preference: Preference = TIME_ONLY,
    must_fit: bool = True,
    num_epochs: int | None = None,
    mean_step: MeanStep | None = None,
) -> CourseResult:
    """Let a scheduler decide all epochs of a draw, and judge what it decided.

    Each epoch has the network of its start and keeps it for ``epoch_s`` by the clock, in which the
    plan does as many iterations as there is time for after a change; `des.simulate_epoch` judges
    it. The first plan costs nothing.

    Parameters
    ----------
    must_fit
        False judges plans that ask for more memory than there is as if they fitted, and says so.
    num_epochs
        The first ones only; None: all.
    mean_step
        Judges plans whose copies of the model do not exchange after every step. None: as many of
        their steps as count as an epoch's work are simulated.

    Raises
    ------
    CourseError
        If a decision does not match the world, does not fit, or needs links that there are not.
    """
    scheduler.begin()
    name = str(getattr(scheduler, "name", type(scheduler).__name__))
    rows: list[CourseRow] = []
    last: Plan | None = None
    for epoch, topology in enumerate(freeze_topologies(world, draw_seed, num_epochs)):
        situation = epoch_situation(
            world, topology, epoch, last, preference=preference, corrections=corrections
        )
        begin_s = time.perf_counter()
        decision = scheduler.decide(situation)
        took_s = time.perf_counter() - begin_s
        try:
            if must_fit:
                decision.plan.check_against(topology, world.workload)
                check_memory(topology, world.workload, decision.plan)
            result = _judge(
                world,
                topology,
                decision.plan,
                last,
                corrections=corrections,
                mean_step=mean_step,
            )
        except (ValueError, InfeasiblePlacementError) as reason:
            raise CourseError(
                f"course of {name} on world {world.name}, draw {draw_seed}: the plan of epoch "
                f"{epoch} cannot be taken: {reason}"
            ) from reason
        rows.append(_row(epoch, decision, last, result, took_s))
        last = decision.plan
    return CourseResult(
        world=world.name,
        draw_seed=draw_seed,
        scheduler=name,
        rows=tuple(rows),
        epoch_s=world.epoch_s,
        iterations_per_epoch=world.iterations_per_epoch,
        tokens_per_iteration=world.workload.tokens_per_iteration,
    )


def _judge(
    world: DecisionWorld,
    topology: Topology,
    plan: Plan,
    last: Plan | None,
    *,
    corrections: Corrections,
    mean_step: MeanStep | None,
) -> _Figures:
    """Judge an epoch; copies that seldom exchange by the mean of their steps."""
    is_seldom = has_outer_state(plan)
    result = simulate_epoch(
        topology,
        world.workload,
        plan,
        num_iterations=world.iterations_per_epoch if is_seldom and mean_step is None else 1,
        previous=last,
        restart_s=world.replacement.restart_s,
        pays_bytes=world.replacement.pays_bytes,
        corrections=corrections,
        simulator=simulate_compiled,
    )
    iterations, count = result.iterations, result.num_iterations
    if is_seldom and mean_step is not None:
        step_s, step_bytes = mean_step(topology, world.workload, plan, corrections)
    else:
        step_s = math.fsum(one.makespan_s for one in iterations) / count
        step_bytes = math.fsum(one.communication_cost_bytes for one in iterations) / count
    done = (world.epoch_s - result.migration_s) / step_s
    return _Figures(
        iteration_s=step_s,
        change_s=result.migration_s,
        num_iterations=done,
        moved_bytes=result.moved_bytes,
        cost_bytes=step_bytes,
        utilisation=done
        * world.workload.flops_per_iteration
        / (topology.peak_flops_per_s * world.epoch_s),
        fits_memory=result.fits_memory,
    )


def _row(
    epoch: int, decision: Decision, last: Plan | None, figures: _Figures, took_s: float
) -> CourseRow:
    return CourseRow(
        epoch=epoch,
        plan=decision.plan,
        level=level_of(last, decision.plan),
        is_fallback=decision.is_fallback,
        decision_s=took_s,
        response_s=dict(decision.response_s),
        **figures._asdict(),
    )
