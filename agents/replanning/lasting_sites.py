"""Chance that sites which come and go stay, by their law and by how long they have been there."""

from collections.abc import Callable, Set

import numpy as np

from agents.replanning.observed_world import ObservedWorld
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from agents.replanning.spot import rules


def lasting_sites(
    world: ObservedWorld, names: Set[str], time_s: float
) -> Callable[[float], float] | None:
    """Return the chance that some sites are there for a time [s] more; None if they do not go.

    Each by the law of its stays in the file of the world, given its age; sites go one by one.
    """
    law = world.base.availability
    going = () if law is None else tuple(site for site in law.sites if site.name in names)
    if not going:
        return None
    figures = np.array([[site.up.figures for site in going]])
    ages_s = np.array([[world.age_s(site.name, time_s) for site in going]])

    def chance(length_s: float) -> float:
        return float(rules.site_survival(figures, ages_s, np.array([length_s])).prod())

    return chance
