"""The short form of the targets after a training: on its world and job, its policy against ours."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from agents.decision.depths import DEPTHS
from agents.decision.levels import level_of
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.situation import Decision, Situation
from agents.flat.policy_planner import PolicyPlanner
from agents.flat.task import PlacementTask
from agents.hi_ppo.local.shipped import shipped_local
from agents.hi_ppo.policies import shipped_files
from agents.hi_ppo.schedulers import MOST_SLOWDOWN, policy_scheduler
from agents.planners.choice.depth import with_best_depth
from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope
from scenarios.study.targets.sizes import SHORT, Sizes
from scenarios.study.targets.table import GROUPS, show_targets
from scenarios.study.targets.target import Target
from scenarios.study.targets.target_table import MeasuredTargets, table_html
from scenarios.study.targets.world_file import suite_world_of

ONLY_ITS_WORLD = (
    "a flat policy knows the domains and layers that it was trained on, and no preferences"
)


class FlatPolicy:
    """Places the layers for the links as they are, under the one schedule of its task.

    It sees what its task shows it: links over all paths and the last placement. Before the first
    decision that is the even split, as in its training. With ``chooses_depth`` it is run under
    all depths each time, and the quickest plan is taken.
    """

    def __init__(
        self, policy: PolicyPlanner, task: PlacementTask, *, chooses_depth: bool = False
    ) -> None:
        self._planner: Planner = with_best_depth(policy) if chooses_depth else policy
        self._schedules = DEPTHS if chooses_depth else ()
        self._task = task
        self._rng = np.random.default_rng(0)  # the policy is greedy and draws nothing

    def begin(self) -> None:
        """Forget nothing, as nothing is remembered."""

    def decide(self, situation: Situation) -> Decision:
        """Return the placement for the epoch.

        Raises
        ------
        ValueError
            If the situation has another number of domains or layers than the task.
        """
        self._check(situation)
        problem = PlanningProblem(
            topology=situation.topology,
            workload=situation.workload,
            schedule=self._task.schedule,
            schedules=self._schedules,
            simulator=self._task.simulator,
            corrections=situation.corrections,
            last_plan=situation.last_plan,
        )
        plan = self._planner(problem, self._rng)
        return Decision(plan=plan, level=level_of(situation.last_plan, plan))

    def _check(self, situation: Situation) -> None:
        own = (self._task.world.num_domains, self._task.workload.num_layers)
        given = (situation.topology.num_domains, situation.workload.num_layers)
        if given != own:
            raise ValueError(
                f"flat policy: the situation must have the {own[0]} domains and {own[1]} layers of "
                f"its training, got {given[0]} and {given[1]}"
            )


THIS_RUN = "this run"

TARGETS = ("time", "communication", "response", "allocation", "gap", "stability", "fluctuation")
"""Groups of `scenarios.study.targets.table.GROUPS`: those that a world and seconds suffice
for.
"""

SIZES: Sizes = replace(
    SHORT,
    num_draws=4,
    num_epochs=16,
    num_load_epochs=128,
    num_decisions=200,
    timing_budget_s=5.0,
    fluctuations=(0.0, 0.3),
)

QUICK_SIZES: Sizes = replace(
    SIZES, num_draws=4, num_epochs=4, num_load_epochs=32, num_decisions=50, timing_budget_s=1.0
)
"""Sizes of a run that shows all steps and claims nothing."""

ELSEWHERE = "All targets, on suites of worlds: python -m scenarios.kpi"

_EXPLAINED = ("training time", "utilisation", "communication cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTargets:
    """The table of a run, or why there is none.

    Attributes
    ----------
    measured
        None: nothing was measured, and ``notes`` say why.
    notes
        Sentences on what the figure rests on.
    """

    measured: MeasuredTargets | None
    notes: tuple[str, ...]

    @property
    def note(self) -> str:
        """All notes."""
        return " ".join(self.notes)

    def to_plain(self) -> dict[str, object]:
        """Return plain values for JSON."""
        if self.measured is None:
            return {"scope": self.note, "columns": {}, "seeds": None}
        return self.measured.to_plain(self.note)

    @property
    def html(self) -> str:
        """The table as a part of a page."""
        if self.measured is None:
            return f"<p>{html.escape(self.note)}</p>"
        return table_html(self.measured, self.note)

    def show(self, console: Console, explained: Sequence[str] = _EXPLAINED) -> None:
        """Print the table, and of the notes those to some targets."""
        if self.measured is None:
            console.print(self.note, soft_wrap=True, markup=False)
            return
        show_targets(console, self.measured, self.note, explained=explained)


def targets_of_run(
    task: PlacementTask,
    policy: PolicyPlanner,
    *,
    checkpoints: Sequence[Path] | None = None,
    sizes: Sizes = SIZES,
    seed: int = 0,
) -> RunTargets:
    """Measure the short form on the world and the job of a task.

    A world that cannot be measured on has no table but a sentence: a training does not fail by it.

    Parameters
    ----------
    policy
        The one just trained.
    checkpoints
        Policies to compare it with; None for the first one that is shipped, if any is.
    """
    paths = shipped_files()[:1] if checkpoints is None else checkpoints
    try:
        world = suite_world_of("of this run", task.world.world(0), task.workload)
        scope = Scope(sizes=sizes, seed=seed, world=world)
        columns = [_own(task, policy, scope)]
        columns += [policy_column(path.stem, path, scope) for path in paths]
        targets = tuple(map(targets_of_column, columns))
    except ValueError as error:
        return RunTargets(measured=None, notes=(f"Targets are not measured: {error}.",))
    measured = MeasuredTargets(
        columns=tuple(column.name for column in columns), targets=targets, are_seeds=False
    )
    return RunTargets(measured=measured, notes=_notes(task, columns, sizes))


def _own(task: PlacementTask, policy: PolicyPlanner, scope: Scope) -> SchedulerColumn:
    return SchedulerColumn(
        name=THIS_RUN,
        make=lambda: FlatPolicy(policy, task),
        scope=scope,
        only_world=ONLY_ITS_WORLD,
    )


def policy_column(name: str, path: Path, scope: Scope) -> SchedulerColumn:
    """Return the column of trained policies in a file."""
    make, propose = policy_scheduler(path)
    return SchedulerColumn(
        name=name,
        make=make,
        scope=scope,
        propose=propose,
        local=shipped_local(),
        make_bounded=policy_scheduler(path, MOST_SLOWDOWN)[0],
    )


def targets_of_column(column: SchedulerColumn) -> tuple[Target, ...]:
    """Measure the short form for one column."""
    return tuple(target for name in TARGETS for target in GROUPS[name](column))


def _notes(
    task: PlacementTask, columns: Sequence[SchedulerColumn], sizes: Sizes
) -> tuple[str, ...]:
    depths = f"{THIS_RUN} keeps to the schedule {task.schedule}; references choose the depth."
    moves = "" if task.replacement is not None else ", which its training did not know"
    return (
        f"On the world of this run, moving as those of eval_calm, eval_held and hard; "
        f"{sizes.num_draws} draws of {sizes.num_epochs} epochs of each: too few to claim anything.",
        f"{PERFECT_DEVICES.capitalize()}.",
        f"Moves cost a restart and the bytes{moves}. {depths}",
        *(("No Hi-PPO policy is shipped, so its column is left out.",) if len(columns) < 2 else ()),
        f"{ELSEWHERE}.",
    )
