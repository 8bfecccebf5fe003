"""The scheduling task: a world, what may be decided in it, and how episodes are paid for."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, Self, get_args

import numpy as np

from agents.decision.situation import TIME_ONLY, Preference
from agents.scheduling.draws import SCOUT_SEED, DrawnCourses, known_plans
from agents.scheduling.observation import Observing
from agents.scheduling.setting import KnownPlan, Setting, steps_s
from des import Placement, Plan
from des.base.checks import require_count, require_non_negative
from des.compiled.many.layout import Real, Whole
from des.plan.synchronisation import Synchronisation

KEEP, DESCRIBED, FIRST_KNOWN = 0, 1, 2
"""Choices: the plan in force, the plan that the rest of the action describes, the known plans."""

TILTS = (2.0 / 3.0, 1.0, 1.5)
"""Factors by which a domain counts as quicker when layers and microbatches are shared out."""


class Described(NamedTuple):
    """Plan of an action: domains of each pipeline in order, tilts by domain, and two numbers."""

    groups: tuple[tuple[int, ...], ...]
    tilts: tuple[float, ...]
    schedule: int
    mode: int


@dataclass(frozen=True, kw_only=True)
class PlanAction:
    """Layout of an action of K domains: whole numbers from 0, each below its size.

    ``choice`` says which plan is taken; the others describe one, and are read with the choice
    `DESCRIBED` alone. For each domain there is the ``group``, 0 for unused; the ``rank`` by which
    it stands within the group, where of equals the first domain comes first; and the ``tilt``, an
    index of `TILTS`. Each group is a pipeline; several train copies of the model.

    Attributes
    ----------
    num_known
        Known plans to choose from, C.
    most_groups
        Most pipelines of a plan, G.
    schedules, modes
        Schedules of pipelines, and ways to keep copies in step, to choose from.
    is_described
        Whether plans may be described. If not, an action is one number: 0 keeps the plan in force,
        ``1 + c`` takes the known plan ``c``.
    """

    num_domains: int
    num_known: int
    most_groups: int
    schedules: tuple[str, ...]
    modes: tuple[Synchronisation, ...]
    is_described: bool = True

    def __post_init__(self) -> None:
        require_count("plan action", "num_domains", self.num_domains)
        require_count("plan action", "most_groups", self.most_groups)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each component, (A,)."""
        size = self.num_domains
        if not self.is_described:
            return (1 + self.num_known,)
        return (
            FIRST_KNOWN + self.num_known,
            *[self.most_groups + 1] * size,
            *[size] * size,
            *[len(TILTS)] * size,
            len(self.schedules),
            len(self.modes),
        )

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Components by name."""
        size, found, begin = self.num_domains, {}, 0
        lengths = {"choice": 1, "group": size, "rank": size, "tilt": size, "schedule": 1, "mode": 1}
        for name, length in lengths.items():
            found[name] = slice(begin, begin + length)
            begin += length
        return found

    def choices(self, actions: Whole) -> Whole:
        """Read choices off actions (N, A), (N,): those above, whatever the layout."""
        first: Whole = actions[:, 0]
        return first if self.is_described else np.where(first == KEEP, KEEP, first + 1)

    def of_choices(self, choices: Whole) -> Whole:
        """Return actions (N, A) of choices (N,) that describe nothing."""
        actions = np.zeros((len(choices), len(self.sizes)), dtype=np.int64)
        is_shifted = not self.is_described
        actions[:, 0] = np.where(choices == KEEP, KEEP, choices - is_shifted)
        return actions

    def described(self, action: Whole) -> Described:
        """Read the plan that an action describes; the groups that have no domain are left out."""
        parts = self.parts
        group, rank = action[parts["group"]].tolist(), action[parts["rank"]].tolist()
        by_rank = sorted(range(self.num_domains), key=lambda domain: rank[domain])
        groups = (
            tuple(domain for domain in by_rank if group[domain] == number)
            for number in range(1, self.most_groups + 1)
        )
        return Described(
            groups=tuple(one for one in groups if one),
            tilts=tuple(TILTS[each] for each in action[parts["tilt"]].tolist()),
            schedule=int(action[parts["schedule"]][0]),
            mode=int(action[parts["mode"]][0]),
        )

    def encoded(self, described: Described) -> Whole:
        """Return an action that describes a plan; the inverse of `described`."""
        action = np.zeros(len(self.sizes), dtype=np.int64)
        action[0] = DESCRIBED
        for number, members in enumerate(described.groups):
            for place, domain in enumerate(members):
                action[self.parts["group"]][domain] = number + 1
                action[self.parts["rank"]][domain] = place
        action[self.parts["tilt"]] = [TILTS.index(each) for each in described.tilts]
        action[self.parts["schedule"]] = described.schedule
        action[self.parts["mode"]] = described.mode
        return action


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
