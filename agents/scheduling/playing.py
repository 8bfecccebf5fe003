"""Episodes of the scheduling task played by simple rules, or by any policy."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from agents.decision.world import equal_work_s
from agents.replanning.payoff import undone
from agents.scheduling.batch import Actions, SchedulingBatch
from agents.scheduling.task import FIRST_KNOWN, KEEP, SchedulingTask
from des.compiled.many.layout import Observations, Real

Act = Callable[[Observations], Actions]
"""Actions (N, A) for observations (N, D)."""


class Played(NamedTuple):
    """Whole episodes, (N,): time of the work, epochs after the first with a change, and bytes sent.

    Iterations are those in the time of the episode by the clock; bytes are theirs and of changes.
    """

    total_s: Real
    num_moves: Real
    num_iterations: Real
    sent_bytes: Real


def play(task: SchedulingTask, act: Act, draw_seeds: Sequence[int]) -> Played:
    """Play an episode on each of some draws, all side by side.

    Examples
    --------
    >>> from agents.scheduling.make_task import make_scheduling_task
    >>> task = make_scheduling_task(num_known=4, trainer="ideal")
    >>> kept, moved = (play(task, act, [7]) for act in (keeping(task), over_horizon(task, 4.0)))
    >>> bool(moved.total_s < kept.total_s)
    True
    """
    batch = SchedulingBatch(task, [np.random.default_rng(seed) for seed in draw_seeds])
    observations = batch.reset(draw_seeds)
    done, num_moves, sent_bytes = np.zeros((3, len(draw_seeds)))
    for _ in range(task.setting.world.num_epochs):
        step = batch.step(act(observations), resets=False)
        observations = step.observations
        done += step.metrics["num_iterations"]
        num_moves += step.metrics["change_s"] > 0.0
        sent_bytes += step.metrics["moved_bytes"] + step.metrics["wan_bytes"]
    world = task.setting.world
    clock_s, work = (world.num_epochs * one for one in (world.epoch_s, world.iterations_per_epoch))
    return Played(
        total_s=np.array([equal_work_s(clock_s, work, each) for each in done.tolist()]),
        num_moves=num_moves,
        num_iterations=done,
        sent_bytes=sent_bytes,
    )


def keeping(task: SchedulingTask) -> Act:
    """Never move: the start plan stays."""
    return lambda observations: task.action.of_choices(np.full(len(observations), KEEP))


def holding(task: SchedulingTask, known: int) -> Act:
    """Take a known plan by its number at first, and hold that."""
    return lambda observations: task.action.of_choices(
        np.full(len(observations), FIRST_KNOWN + known)
    )


def at_random(task: SchedulingTask, seed: int) -> Act:
    """Draw every component of every action."""
    rng, sizes = np.random.default_rng(seed), np.array(task.action.sizes)
    return lambda observations: rng.integers(0, sizes, (len(observations), len(sizes)))


def over_horizon(task: SchedulingTask, epochs: float) -> Act:
    """Take the known plan that does most in ``epochs`` after its change, read off the observation.

    The plan in force is among them where it is known, as it is from the first epoch on.
    """
    parts = task.observing.parts

    def act(observations: Observations) -> Actions:
        of = {name: observations[:, parts[name]].astype(np.float64) for name in parts}
        step = np.exp(of["own_step"] + of["known_step"])
        scores = undone(np.expm1(of["change"]), step, np.array(epochs))
        return task.action.of_choices(FIRST_KNOWN + scores.argmin(axis=1))

    return act
