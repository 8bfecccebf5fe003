"""Table of what can be learnt: one row makes a task known to ``eastwest train`` and to its help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task: the module whose ``run(arguments, prog)`` trains it, and its purpose."""

    module: str
    about: str

    def run(self, arguments: Sequence[str], prog: str) -> int:
        """Train by the flags of the task and return the exit code."""
        code: int = import_module(self.module).run(arguments, prog)
        return code


TASKS: Mapping[str, Task] = {
    name: Task(module=f"scenarios.{module}", about=about)
    for name, module, about in (
        ("main", "train.east_west.command", "placement and moves on a world (the default)"),
        ("flat", "train.flat_command", "the flat policy on a world, as --policy flat"),
        ("placement", "train.train_hi_ppo", "the placement policy on a suite of worlds"),
        ("moves", "train.train_hi_ppo", "placement, then moves, on a suite of worlds"),
        ("local", "train.train_local", "the local agent inside domains"),
        ("autoscale", "autoscale.training", "a policy that scales an inference fleet"),
        ("queue", "job_queue.training", "a policy that orders a queue of jobs"),
        ("spot", "train.train_spot", "a policy that holds sites that come and go"),
        ("scheduling", "train.train_scheduling", "PPO of Stable-Baselines3 that re-plans"),
    )
}
"""All tasks, in the order of the help."""
