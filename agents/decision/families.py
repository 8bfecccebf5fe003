"""Families of plans: which parallelism there is between domains."""

from typing import Literal, get_args

from des import DecoupledDiLoCo, Plan

Family = Literal[
    "single",
    "pipeline",
    "replicas",
    "hybrid",
    "diloco",
    "streaming_diloco",
    "decoupled_diloco",
]
"""Kind of a plan: all layers in one domain; a pipeline over several; a whole copy of the model a
domain; groups of domains, a pipeline in each, replicas between them; replicas or groups that
exchange what they learnt after a number of steps, all at once, a part at a time, or without waiting
for all."""

EVERY_FAMILY: tuple[Family, ...] = get_args(Family)
"""All families."""

FAMILIES: tuple[Family, ...] = EVERY_FAMILY[:6]
"""Families whose replicas wait for each other: those of plan spaces, whose bounds are proven."""

SYNCHRONOUS: tuple[Family, ...] = FAMILIES[:4]
"""Families that leave the arithmetic of training unchanged."""


def family_of(plan: Plan) -> Family:
    """Classify a plan.

    Examples
    --------
    >>> from des import DiLoCo, Placement
    >>> here, there = Placement.parse("0*4"), Placement.parse("1*4")
    >>> family_of(Plan(placement=here)), family_of(Plan(placement=here, replicas=(there,)))
    ('single', 'replicas')
    >>> family_of(Plan(placement=here, replicas=(there,), synchronisation=DiLoCo()))
    'diloco'
    """
    num_domains = [len(set(one.domain_of_layer)) for one in plan.placements]
    if not plan.replicas:
        return "single" if num_domains == [1] else "pipeline"
    mode = plan.synchronisation
    if mode.steps_between > 1:
        if isinstance(mode, DecoupledDiLoCo):
            return "decoupled_diloco"
        return "streaming_diloco" if mode.overlap_steps else "diloco"
    return "replicas" if max(num_domains) == 1 else "hybrid"
