"""Levels of changes of plan: how much of a plan a change touches."""

from collections.abc import Hashable
from typing import Literal, get_args

from agents.decision.families import family_of
from des import Plan

MoveLevel = Literal["nothing", "depth", "split", "order", "groups", "family"]
"""Level of a change of plan, each with all of those before it: equal to the last; another schedule,
exchange or compression; other shares of the layers or of the step over the same domains in the same
order; another order of domains, or for a single pipeline another subset; another division of
domains into copies of the model; another family of plans, where one domain counts as a pipeline."""

LEVELS: tuple[MoveLevel, ...] = get_args(MoveLevel)
"""Levels of moves by the number that stands for them in tables, the least first."""


def level_marks(plan: Plan) -> tuple[Hashable, ...]:
    """Marks of a plan for the levels from ``depth`` on: two plans differ in as many as the level.

    Each mark contains those behind it, so plans that differ in one differ in all before it.
    """
    if not plan.replicas:
        return plan, plan.placement, _order_of(plan)[0], "pipeline", "pipeline"
    family, order = family_of(plan), _order_of(plan)
    return (
        plan,
        (family, plan.placements, plan.shares),
        (family, order),
        (family, tuple(sorted(tuple(sorted(set(group))) for group in order))),
        family,
    )


def level_of(last: Plan | None, plan: Plan) -> MoveLevel:
    """Classify the change of plan from the last one; ``order`` without one.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from des import DiLoCo, Placement
    >>> here, there = (Placement.parse(text) for text in ("0*3,1*1", "0*2,1*2"))
    >>> level_of(Plan(placement=here), Plan(placement=there))
    'split'
    >>> level_of(Plan(placement=here), Plan(placement=here, schedule="gpipe"))
    'depth'

    Copies of the model in other domains, in other shares, and seldom exchanged:

    >>> copies = Plan(placement=Placement.parse("0*4"), replicas=(Placement.parse("1*4"),))
    >>> level_of(copies, replace(copies, replicas=(Placement.parse("2*4"),)))
    'groups'
    >>> level_of(copies, replace(copies, shares=(3, 1)))
    'split'
    >>> level_of(copies, replace(copies, synchronisation=DiLoCo()))
    'family'
    """
    if last is None:
        return "order"
    differing = zip(level_marks(last), level_marks(plan), strict=True)
    return LEVELS[sum(old != new for old, new in differing)]


def _order_of(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Domains of the stages of each copy of the model."""
    return tuple(tuple(stage.domain for stage in one.stages) for one in plan.placements)
