"""Small scheduling tasks: the default world in short episodes, and two domains by hand."""

from functools import cache

import numpy as np
from strategies import unit_workload, world

from agents.decision.families import FAMILIES
from agents.decision.levels import level_of
from agents.decision.load import LoadLaw
from agents.decision.situation import Decision, Situation
from agents.scheduling.make_task import make_scheduling_task
from agents.scheduling.task import SchedulingTask
from des import Plan
from des.plan.replacement import Replacement

ID = "EastWest/Scheduling-v0"
NUM_EPOCHS = 5
FEW = {
    "trainer": "ideal",
    "num_epochs": NUM_EPOCHS,
    "num_known": 3,
    "num_draws": 8,
}
"""The default world in short episodes, among perfect devices."""

RARE = FEW | {
    "families": FAMILIES,
    "period_steps": 7,
}
"""The same with copies that exchange every 7 iterations, too."""

HALF = LoadLaw(low_factor=0.5, high_factor=0.5)
"""Domains at half their speed."""

PAIR = {
    "trainer": "ideal",
    "network": world("AB", {"AB": (100.0, 0.25), "BA": (50.0, 0.5)}),
    "model": unit_workload([(1, 2)] * 4, num_microbatches=2, message_bytes=4.0),
    "law": "steady",
    "load": HALF,
    "num_epochs": 3,
    "epoch_s": 48.0,
    "replacement": Replacement(restart_s=3.0),
    "num_known": 1,
    "families": ("single", "pipeline"),
    "schedules": ("1f1b",),
}
"""Two unit domains, four unit layers."""


@cache
def few() -> SchedulingTask:
    """The default world in short episodes."""
    return make_scheduling_task(**FEW)


@cache
def rare() -> SchedulingTask:
    """The same with copies that exchange rarely."""
    return make_scheduling_task(**RARE)


def some_actions(task: SchedulingTask, num_envs: int, rng: np.random.Generator) -> np.ndarray:
    """Actions drawn at random, (N, A)."""
    sizes = np.array(task.action.sizes)
    return rng.integers(0, sizes, (num_envs, len(sizes)))


class Replaying:
    """Decides plans that are given, one an epoch."""

    name = "replaying"

    def __init__(self, plans: list[Plan]) -> None:
        self._plans = plans
        self.begin()

    def begin(self) -> None:
        self._left = list(self._plans)

    def decide(self, situation: Situation) -> Decision:
        plan = self._left.pop(0)
        return Decision(plan=plan, level=level_of(situation.last_plan, plan))
