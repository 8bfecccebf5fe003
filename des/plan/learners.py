"""Learners of a plan that merge by a quorum: what each does by itself, and their outer steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from des.base.checks import require_count, require_non_negative, require_positive
from des.job.workload import Workload
from des.plan.decoupled import DecoupledDiLoCo
from des.plan.plan import Plan
from des.plan.synchronisation import EVERY_STEP


def has_own_clocks(plan: Plan) -> bool:
    """Whether replicas of a plan are learners that do not wait for all others.

    Examples
    --------
    >>> from des.plan.placement import Placement
    >>> east, west = Placement.parse("0*4"), Placement.parse("1*4")
    >>> modes = DecoupledDiLoCo(quorum=1), DecoupledDiLoCo(quorum=2)
    >>> copies = Plan(placement=east, replicas=(west,))
    >>> [has_own_clocks(replace(copies, synchronisation=mode)) for mode in modes]
    [True, False]
    """
    mode = plan.synchronisation
    return isinstance(mode, DecoupledDiLoCo) and mode.quorum < len(plan.placements)


def require_one_clock(owner: str, plan: Plan) -> None:
    """Refuse a plan whose learners have clocks of their own where steps of all are one step."""
    if has_own_clocks(plan):
        raise ValueError(
            f"{owner}: quorum of the plan must be all {len(plan.placements)} learners, as an "
            f"iteration is one of all; got {plan.synchronisation!r}"
        )


def learners_of(workload: Workload, plan: Plan) -> list[tuple[Workload, Plan]]:
    """Workload and plan of each learner alone: its pipeline, and its share of the microbatches."""
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    return [
        (
            replace(workload, num_microbatches=share),
            replace(
                plan,
                placement=own,
                replicas=(),
                shares=(),
                synchronisation=EVERY_STEP,
                exchange=replace(plan.exchange, tree=()),
            ),
        )
        for own, share in zip(plan.placements, shares, strict=True)
    ]


def _after_steps(start_s: float, step_s: float, num_steps: int) -> float:
    """End of some steps, one after the other. [s]"""
    end_s = start_s
    for _ in range(num_steps):
        end_s += step_s
    return end_s


class OuterStep(NamedTuple):
    """A merge: its begin and end, and when each learner reported, infinite where it had not. [s]"""

    begin_s: float
    end_s: float
    reports_s: tuple[float, ...]

    @property
    def members(self) -> tuple[bool, ...]:
        """Whether each learner is part of it."""
        return tuple(at_s < math.inf for at_s in self.reports_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learners:
    """Learners on links that stand still.

    Attributes
    ----------
    step_s
        Time of a step of each, alone. [s]
    tokens
        Of a step of each: what its changes weigh.
    merge_s
        Time of an exchange of all parameters between the syncers of all learners. [s]
    """

    mode: DecoupledDiLoCo
    step_s: tuple[float, ...]
    tokens: tuple[int, ...]
    merge_s: float

    def __post_init__(self) -> None:
        owner = "learners"
        for one in self.step_s:
            require_positive(owner, "step_s", one)
        require_non_negative(owner, "merge_s", self.merge_s)
        if not 1 <= self.mode.quorum <= len(self.step_s) == len(self.tokens):
            raise ValueError(
                f"{owner}: step_s and tokens must be of as many learners, the quorum at least; got "
                f"{len(self.step_s)} and {len(self.tokens)}, and a quorum of {self.mode.quorum}"
            )

    def merge_tokens(self, steps: Sequence[OuterStep]) -> int:
        """Tokens of all reports that were merged, in each of which they are a learner's weight."""
        pairs = (pair for one in steps for pair in zip(self.tokens, one.members, strict=True))
        return self.mode.steps_between * sum(own for own, is_in in pairs if is_in)

    def own_steps_s(self, steps: Sequence[OuterStep]) -> tuple[float, ...]:
        """Mean step of each learner, waits included, from its first report to its last. [s]"""
        found = []
        for learner in range(len(self.step_s)):
            at_s = [one.reports_s[learner] for one in steps if one.members[learner]]
            found.append((at_s[-1] - at_s[0]) / ((len(at_s) - 1) * self.mode.steps_between))
        return tuple(found)

    def mean_step_s(self, own_steps_s: Sequence[float]) -> float:
        """Time in which learners of some own mean steps see the tokens of one step of each. [s]

        Examples
        --------
        >>> mode = DecoupledDiLoCo(quorum=1)
        >>> one = Learners(mode=mode, step_s=(1.0, 3.0), tokens=(1, 1), merge_s=0.0)
        >>> one.mean_step_s([1.0, 3.0]), one.mean_step_s([3.0, 3.0])
        (1.5, 3.0)
        """
        slowest_s = max(own_steps_s)
        pairs = zip(self.tokens, own_steps_s, strict=True)
        return slowest_s / (
            sum(own * (slowest_s / one_s) for own, one_s in pairs) / sum(self.tokens)
        )


def outer_steps(learners: Learners, num_periods: int) -> tuple[OuterStep, ...]:
    """Merges until each learner has been merged some times, as `des.training.learners` has them.

    Each learner has one report that is not merged, made or to come, as its next steps wait for the
    merge of the last one: the times of these reports say when the next merge begins.

    Raises
    ------
    ValueError
        If the number is out of range.

    Examples
    --------
    >>> mode = DecoupledDiLoCo(steps_between=2, quorum=1)
    >>> pair = Learners(mode=mode, step_s=(1.0, 3.0), tokens=(1, 1), merge_s=0.5)
    >>> [(one.begin_s, one.members) for one in outer_steps(pair, 1)]
    [(2.0, (True, False)), (4.5, (True, False)), (6.0, (False, True))]
    """
    require_count("learners", "num_periods", num_periods)
    mode, step_s, free_s = learners.mode, learners.step_s, 0.0
    reports_s = [_after_steps(0.0, own_s, mode.steps_between) for own_s in step_s]
    num_merged, found = [0] * len(step_s), []
    while min(num_merged) < num_periods:
        completed_s, last = sorted(zip(reports_s, range(len(step_s)), strict=True))[mode.quorum - 1]
        due_s = completed_s + mode.grace_steps * step_s[last]
        begin_s = max(free_s, min(due_s, max(reports_s)))
        free_s = begin_s + learners.merge_s
        merged = [at_s if at_s <= begin_s else math.inf for at_s in reports_s]
        found.append(OuterStep(begin_s, free_s, tuple(merged)))
        for learner, is_in in enumerate(found[-1].members):
            if is_in:
                num_merged[learner] += 1
                now_s = _after_steps(reports_s[learner], step_s[learner], mode.overlap_steps)
                left = mode.steps_between - mode.overlap_steps
                reports_s[learner] = _after_steps(max(now_s, free_s), step_s[learner], left)
    return tuple(found)
