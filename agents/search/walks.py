"""Walks from the chains of good candidates to better ones, a site at a time."""

from collections.abc import Sequence

from agents.search.candidates import Candidate
from agents.search.chains import SiteChains, changed_chains
from agents.search.desk import SearchDesk
from agents.search.families import survey_alone

_LEAST_GAIN = 0.999
"""Share of the time below which a changed chain must be for the walk to go on from it."""

_MOST_WALKED = 3
"""Most candidates whose chain of sites is changed, and most of different chains."""


def walk_chains(
    desk: SearchDesk, pipelines: Sequence[Candidate], most_sites: int
) -> list[Candidate]:
    """Return pipelines, and the best of them with their chains changed as long as that helps."""
    found = list(pipelines)
    ranked = sorted(pipelines, key=lambda one: one.estimate_s)
    first = {one.chains: one for one in reversed(ranked)}
    of_chains = sorted(first.values(), key=lambda one: one.estimate_s)
    starts = dict.fromkeys((*ranked[:_MOST_WALKED], *of_chains[:_MOST_WALKED]))
    sites = range(desk.topology.num_domains)
    for start in starts:
        best = start
        while True:
            near = SiteChains.of(changed_chains(best.chains[0], sites, most_sites))
            own = survey_alone(desk, best.setting, near, best.estimate_s)
            nearest = min(own, key=lambda one: one.estimate_s, default=best)
            if not nearest.estimate_s < _LEAST_GAIN * best.estimate_s:
                break
            best = nearest
        found.append(best)
    return found
