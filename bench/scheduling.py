"""Steps per second of the scheduling environment: one by one, and many together."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.scheduling.env import SchedulingEnv, SchedulingVectorEnv
from agents.scheduling.make_task import make_scheduling_task
from agents.scheduling.task import KEEP, SchedulingTask
from bench.report import Section, Table, column
from bench.timing import Contestant, Effort, Timing, race, speed_ratio
from bench.worlds import SEED

BATCH_SIZES = (16, 64, 256)
NUM_DRAWS = 32
ACTIONS = {"all components at random": 0.0, "9 of 10 keep the plan": 0.9}
"""Shares of actions that keep the plan in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One batch."""

    actions: str = column("actions")
    batch: str = column("environments")
    steps_per_s: float = column("steps/s", ",.0f")
    steps_per_cpu_s: float = column("per CPU second", ",.0f")
    ratio: float = column("x one by one", ",.1f")
    spread_percent: float = column("± %", ".0f")


def measure(effort: Effort) -> Section:
    """Time steps among perfect devices in the single and in the vector environment."""
    task = make_scheduling_task(trainer="ideal", num_draws=2 if effort.is_quick else NUM_DRAWS)
    for seed in range(task.num_draws or 0):
        task.draws.of(seed)
    rows = [row for name, kept in ACTIONS.items() for row in _rows(task, name, kept, effort)]
    return Section(
        name="scheduling",
        tables=[Table(title="Steps of EastWest/Scheduling-v0 among perfect devices", rows=rows)],
        notes=[
            f"Episodes are among {NUM_DRAWS} draws that are worked out already. One by one: the "
            "Gymnasium environment."
        ],
    )


def _rows(task: SchedulingTask, name: str, kept: float, effort: Effort) -> list[StepRow]:
    batch_sizes = (2,) if effort.is_quick else BATCH_SIZES
    contestants = [Contestant(name="one by one", call=_single(task, kept))]
    contestants += [
        Contestant(name=f"{size} together", call=_together(task, size, kept), num_items=size)
        for size in batch_sizes
    ]
    timings = race(contestants, effort)
    return [_row(name, timing, timings[0]) for timing in timings]


def _actions(task: SchedulingTask, num_envs: int, kept: float) -> np.ndarray:
    """Actions (steps, N, A), the same each time."""
    rng, sizes = np.random.default_rng(SEED), np.array(task.action.sizes)
    actions = rng.integers(0, sizes, (64, num_envs, len(sizes)))
    actions[rng.random(actions.shape[:2]) < kept, 0] = KEEP
    return actions


def _single(task: SchedulingTask, kept: float) -> Callable[[], object]:
    env, actions, count = SchedulingEnv(task=task), _actions(task, 1, kept), iter(range(2**62))
    env.reset(seed=SEED)

    def step() -> None:
        if env.step(actions[next(count) % len(actions), 0])[3]:
            env.reset()

    return step


def _together(task: SchedulingTask, num_envs: int, kept: float) -> Callable[[], object]:
    env, actions = SchedulingVectorEnv(num_envs, task=task), _actions(task, num_envs, kept)
    env.reset(seed=SEED)
    count = iter(range(2**62))
    return lambda: env.step(actions[next(count) % len(actions)])


def _row(name: str, timing: Timing, single: Timing) -> StepRow:
    return StepRow(
        actions=name,
        batch=timing.name,
        steps_per_s=timing.items_per_s,
        steps_per_cpu_s=timing.items_per_cpu_s,
        ratio=speed_ratio(timing, single),
        spread_percent=1e2 * timing.spread_fraction,
    )
