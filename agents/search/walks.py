"""Walks from the chains of good candidates to better ones, a site at a time."""

from collections.abc import Sequence

from agents.search.candidates import Candidate
from agents.search.chains import Chain, SiteChains, changed_chains
from agents.search.families import survey_alone
from agents.search.workspace import Workspace

_LEAST_GAIN = 0.999
"""Share of the time below which a changed chain must be for the walk to go on from it."""

_MOST_WALKED = 3
"""Most candidates whose chain of sites is changed, and most of different chains."""


_MOST_AGAIN = 2
"""Most settings of which the best chain is changed where what is near is known."""


def walk_chains(
    workspace: Workspace, pipelines: Sequence[Candidate], most_sites: int
) -> list[Candidate]:
    """Return pipelines, and the best of them with their chains changed as long as that helps."""
    found = list(pipelines)
    ranked = sorted(pipelines, key=lambda one: one.estimate_s)
    first = {one.chains: one for one in reversed(ranked)}
    of_chains = sorted(first.values(), key=lambda one: one.estimate_s)
    starts = dict.fromkeys((*ranked[:_MOST_WALKED], *of_chains[:_MOST_WALKED]))
    found += (_walk(workspace, start, most_sites) for start in starts)
    return found


def walk_again(
    workspace: Workspace,
    pipelines: Sequence[Candidate],
    first: Sequence[Chain],
    most_sites: int,
) -> list[Candidate]:
    """Return pipelines, and the best of first chains and of a few settings with them changed."""
    ranked = sorted(pipelines, key=lambda one: one.estimate_s)
    of_settings = {one.setting: one for one in reversed(ranked)}
    starts = [one for one in ranked if one.chains[0] in first][:1]
    starts += sorted(of_settings.values(), key=lambda one: one.estimate_s)[:_MOST_AGAIN]
    return [*pipelines, *(_walk(workspace, one, most_sites) for one in dict.fromkeys(starts))]


def _walk(workspace: Workspace, start: Candidate, most_sites: int) -> Candidate:
    """The best pipeline on the way to where no changed chain is better."""
    best, sites = start, range(workspace.topology.num_domains)
    while True:
        near = SiteChains.of(changed_chains(best.chains[0], sites, most_sites))
        own = survey_alone(workspace, best.setting, near, best.estimate_s)
        nearest = min(own, key=lambda one: one.estimate_s, default=best)
        if not nearest.estimate_s < _LEAST_GAIN * best.estimate_s:
            return best
        best = nearest
