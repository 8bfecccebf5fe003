"""Judging planners side by side: every one decides on the same held-out draws of the network."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agents.decision.problem import Planner, PlanningProblem
from agents.flat.episode import Episode
from agents.flat.task import Baseline, PlacementTask
from des import Placement, Plan, Topology
from des.base.random_numbers import derive_seed

_STREAM = 0xE7A1
"""Keeps evaluation draws apart from training draws of an equal seed, which are of stream 0."""

COSTS_OF_CHANGE = ("migration_s", "moved_bytes")
"""Figures of an epoch that are 0 where a changed placement costs nothing."""

_COSTS = ("communication_cost_bytes", "communication_cost_cycles")
_JUDGED_BY = ("iteration_time_s", "utilisation", *_COSTS, *COSTS_OF_CHANGE)
"""Metrics of the task that the table of evaluations holds as they are; of both costs its own."""


@dataclass(frozen=True, kw_only=True)
class HeldOutDraw:
    """One decision that no training run has seen."""

    index: int
    base_world: Topology
    topology: Topology
    baseline: Baseline

    def planner_rng(self) -> np.random.Generator:
        """Generator for planners that draw; the same for each of them."""
        return np.random.default_rng([self.index, _STREAM])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Evaluation of one planner's decision on one draw."""

    draw: int
    planner: str
    placement: Placement
    metrics: Mapping[str, float]
    reward: float
    decision_time_s: float

    def row(self) -> dict[str, object]:
        """Figures for the table of evaluations, the wall clock last."""
        return {
            "draw": self.draw,
            "planner": self.planner,
            "placement": str(self.placement),
            **{name: self.metrics[name] for name in _JUDGED_BY if name in self.metrics},
            "reward": self.reward,
            "fits_memory": bool(self.metrics["fits_memory"]),
            "decision_time_s": self.decision_time_s,
        }


def hold_out_draws(task: PlacementTask, *, num_draws: int, seed: int) -> list[HeldOutDraw]:
    """Draw the networks to evaluate on; the same seed gives the same draws."""
    draws = []
    for index in range(num_draws):
        episode = Episode(task)
        episode.begin(int(derive_seed(seed, index, _STREAM)))
        draws.append(
            HeldOutDraw(
                index=index,
                base_world=episode.base_world,
                topology=episode.topology,
                baseline=episode.baseline,
            )
        )
    return draws


def judge_planners(
    task: PlacementTask, name: str, planner: Planner, draws: Sequence[HeldOutDraw]
) -> Iterator[Judgement]:
    """Let a planner decide on every draw, as on the epochs of a training run, one after another.

    So each decision finds the layers where the last one has put them, and pays for what it moves
    where the task says so. The decision time is the wall time from the links to the plan, on
    one core, after one decision to warm up.

    Raises
    ------
    ValueError
        If a plan is more than a placement under the task's schedule.
    """
    planner(planning_problem(task, draws[0].topology), draws[0].planner_rng())
    placement = task.uniform_placement
    for draw in draws:
        rng = draw.planner_rng()
        last_placement = placement
        problem = planning_problem(task, draw.topology, last_plan=task.plan(last_placement))
        started_s = time.perf_counter()
        plan = planner(problem, rng)
        decision_time_s = time.perf_counter() - started_s
        placement = placement_of(task, name, plan)
        epoch = task.run_epoch(draw.topology, placement, last_placement)
        metrics = task.metrics(epoch, draw.baseline)
        yield Judgement(
            draw=draw.index,
            planner=name,
            placement=placement,
            metrics=metrics,
            reward=task.reward(metrics),
            decision_time_s=decision_time_s,
        )


def placement_of(task: PlacementTask, name: str, plan: Plan) -> Placement:
    """Return the placement of a planner's plan, which is all that a task lets it choose.

    Raises
    ------
    ValueError
        If the plan differs from the task's in more than the placement.
    """
    if plan != task.plan(plan.placement):
        raise ValueError(
            f"planner {name}: plan must be a placement under {task.schedule} and nothing else, "
            f"as the task runs it; got {plan!r}"
        )
    return plan.placement


def evaluation_frame(judgements: list[Judgement]) -> pd.DataFrame:
    """One row per draw and planner."""
    return pd.DataFrame([judgement.row() for judgement in judgements])


def planning_problem(
    task: PlacementTask, topology: Topology, last_plan: Plan | None = None
) -> PlanningProblem:
    """Put the task's job on links as they are before a planner."""
    return PlanningProblem(
        topology=topology,
        workload=task.workload,
        schedule=task.schedule,
        simulator=task.simulator,
        corrections=task.corrections,
        last_plan=last_plan,
    )
