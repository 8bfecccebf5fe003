"""The scheduling task: a world, what may be decided in it, and how episodes are paid for."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self, get_args

import numpy as np

from agents.decision.situation import TIME_ONLY, Preference
from agents.scheduling.draws import SCOUT_SEED, DrawnCourses, known_plans
from agents.scheduling.observation import Observing
from agents.scheduling.plan_action import PlanAction
from agents.scheduling.setting import KnownPlan, Setting, steps_s
from des import Placement, Plan
from des.base.checks import require_count, require_non_negative
from des.compiled.many.layout import Real

Actions = Literal["all", "known"]
"""Kinds of actions: plans described or named, or named alone."""

NUM_KNOWN = 8
"""Known plans that an action may name, by default."""

PENALTY = 0.1
"""Default price of an action whose plan cannot be taken, in epochs of the start plan."""


@dataclass(frozen=True, kw_only=True)
class SchedulingTask:
    """Decisions over all epochs of a draw of a world; the plan persists, and changes cost time.

    Epochs pass by the clock. The reward of one is its iterations, in what a change leaves of it,
    over those of the start plan at base figures: an episode of E epochs returns about E where
    nothing moves. An action whose plan cannot be taken leaves the plan in force and costs
    ``penalty``. Under a ``preference`` other than time alone the reward is its
    `agents.decision.situation.Preference.value` of that speed, the utilisation of all GPUs over the
    epoch, and bytes over those of the even pipeline over all domains, changes included.

    Copies of the model that exchange after every step are simulated; of those that exchange rarely
    an iteration takes the mean over a period, see `agents.judge.step_times`.

    Attributes
    ----------
    num_known
        Plans that an action may name by number, the start plan first; 0: none.
    actions
        ``all``, or ``known``: plans are named by number alone.
    num_draws
        Episodes are draws with seeds below this, so that few have to be worked out; None: any.
    """

    setting: Setting
    num_known: int = NUM_KNOWN
    actions: Actions = "all"
    penalty: float = PENALTY
    num_draws: int | None = None
    preference: Preference = TIME_ONLY

    def __post_init__(self) -> None:
        owner = "scheduling task"
        if self.num_known != 0:
            require_count(owner, "num_known", self.num_known)
        if self.actions not in get_args(Actions):
            raise ValueError(
                f"{owner}: actions must be {' or '.join(get_args(Actions))}, got {self.actions!r}"
            )
        if self.actions == "known" and self.num_known == 0:
            raise ValueError(f"{owner}: num_known must be positive where actions are known, got 0")
        require_non_negative(owner, "penalty", self.penalty)
        if self.num_draws is not None:
            require_count(owner, "num_draws", self.num_draws)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the task itself: it is frozen, and what is known of its draws is to be shared."""
        return self

    def variant(self, actions: Actions, preference: Preference) -> Self:
        """Return the task with other actions and rewards; plans and draws known are shared."""
        task = replace(self, actions=actions, preference=preference)
        vars(task).update(known=self.known, draws=self.draws, reference_s=self.reference_s)
        return task

    @cached_property
    def known(self) -> tuple[KnownPlan, ...]:
        """Known plans, the start plan first; that one alone where none may be named."""
        return known_plans(self.setting, self.num_known)

    @property
    def start(self) -> KnownPlan:
        """Plan in force before the first decision, which changes it for nothing."""
        return self.known[0]

    @cached_property
    def action(self) -> PlanAction:
        """Layout of actions."""
        setting = self.setting
        return PlanAction(
            num_domains=setting.num_domains,
            num_known=len(self.known) if self.num_known else 0,
            most_groups=min(setting.num_domains, setting.workload.num_microbatches),
            schedules=setting.space.schedules,
            modes=setting.modes,
            is_described=self.actions == "all",
        )

    @cached_property
    def observing(self) -> Observing:
        """Layout of observations."""
        return Observing(self.setting, self.action.num_known)

    @cached_property
    def draws(self) -> DrawnCourses:
        """Draws of the world, which the environments of this task share."""
        return DrawnCourses(self.setting, self.known)

    @cached_property
    def reference_s(self) -> float:
        """Iteration of the start plan at base figures. [s]"""
        base = [self.setting.world.topology.at_start()]
        return float(steps_s(self.setting, self.setting.networks(base), [self.start], base)[0])

    def value(self, num_iterations: Real, sent_bytes: Real, time_s: float) -> Real:
        """Worth of some iterations in a time, see above, (N,).

        Parameters
        ----------
        sent_bytes
            By these iterations, and by changes of plan.
        """
        speed: Real = num_iterations * (self.reference_s / time_s)
        if self.preference == TIME_ONLY:
            return speed
        world = self.setting.world
        flops_per_s = num_iterations * (world.workload.flops_per_iteration / time_s)
        utilisation = flops_per_s / world.topology.peak_flops_per_s
        even_bytes = self._even_bytes_per_s * time_s
        part = sent_bytes / even_bytes if even_bytes > 0.0 else np.zeros_like(sent_bytes)
        return self.preference.value(speed, utilisation, part)

    @cached_property
    def _even_bytes_per_s(self) -> float:
        """Bytes over links a second of the even pipeline at the pace of the start plan."""
        setting = self.setting
        num_layers = setting.workload.num_layers
        even = Placement.even(min(setting.num_domains, num_layers), num_layers)
        return setting.book.of(Plan(placement=even)).wan_bytes / self.reference_s

    def draw_seed(self, rng: np.random.Generator) -> int:
        """Draw the seed of an episode's draw."""
        return int(rng.integers(self.num_draws or SCOUT_SEED))
