"""Actions of the scheduling task: what each whole number of one stands for."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from des.base.checks import require_count
from des.compiled.many.layout import Whole
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
