"""Suites of jobs on sites that come and go, and the rules that are tuned and judged on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agents.replanning.spot.look_ahead import fit_season
from agents.replanning.spot.table import HOUR_S, SpotCase, SpotMethod
from des.base.command import UsageError
from des.dynamics.site_course import SiteCourse
from des.dynamics.site_law import SpotLaw
from des.spot.engine import run_spot
from des.spot.law_fit import fit_spot_law
from des.spot.offers import Table
from des.spot.spot_law import draw_course, synthetic_law
from des.spot.world import SpotWorld
from des.world.files.spot_trace_files import read_spot_traces
from scenarios.reproduce.spot_sites import NUM_SITES, SiteSets

DECISION_S = 780.0
"""About the time between two decisions: whole ticks of each course. [s]"""

_KNOWN = "1-node/aws-02-15-2023"
_UNSEEN = {"2022": ("1-node/aws-10-26-2022", 1), "16_nodes": ("16-node/aws-08-27-2023", 16)}
_HALF = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class SpotSuites:
    """Cases to tune on, and cases to judge on by suite; sites of the later ones may be unknown.

    ``known`` is the course of all sites that the first ones are of.
    """

    known: SiteCourse
    training: tuple[SpotCase, ...]
    judged: dict[str, tuple[SpotCase, ...]]


def suites_of(traces: Path | None, rows: Sequence[SiteSets], *, sees_all: bool) -> SpotSuites:
    """Make the suites of a clone of the public traces, or of synthetic laws where there is none.

    Five sites are drawn for each row. Halves of a course: the first for tuning, the second to
    judge. Unseen families are judged whole, with what was learnt of the first ones.

    Raises
    ------
    UsageError
        If a folder is missing.
    ValueError
        If a file is no trace.
    """
    if traces is None:
        known, unseen = draw_course(SYNTHETIC, 1, 20_160, 195.0), {"short_stays": _short_stays()}
    else:
        if not (traces / "availability").is_dir():
            raise UsageError(
                "traces: must be a clone of github.com/skypilot-org/spot-traces, with a folder "
                f"availability, got {traces}"
            )
        folder = traces / "availability"
        known = read_spot_traces(folder / _KNOWN)
        unseen = {
            name: read_spot_traces(folder / path, least_servers=least)
            for name, (path, least) in _UNSEEN.items()
        }
    before, after = known.part(0.0, _HALF), known.part(_HALF, 1.0)
    law, season = fit_spot_law(before), fit_season(before)
    pooled = fit_spot_law(before, pooled=True)
    judged = {"known": _cases(after, rows, law, season, sees_all=sees_all)}
    for name, course in unseen.items():
        count = len(course.sites)
        sites = tuple(replace(pooled.sites[0], name=name) for name in course.sites)
        same = replace(pooled, sites=sites)
        usual = [np.repeat(table.mean(axis=0, keepdims=True), count, axis=0) for table in season]
        judged[name] = _cases(course, rows, same, usual, sees_all=sees_all)
    training = _cases(before, rows, law, season, sees_all=sees_all)
    return SpotSuites(known=before, training=training, judged=judged)


def _cases(
    course: SiteCourse,
    rows: Sequence[SiteSets],
    law: SpotLaw,
    season: Sequence[Table],
    *,
    sees_all: bool,
) -> tuple[SpotCase, ...]:
    """Cases of the rows on sites drawn from a course."""
    found = []
    for place, row in enumerate(rows):
        sites = _drawn(place, len(course.sites))
        world = SpotWorld(
            course=course.of_sites(sites),
            offers=row.offers(len(sites)),
            ticks_per_decision=max(round(DECISION_S / course.tick_s), 1),
            sees_all=sees_all,
        )
        own = replace(law, sites=tuple(law.sites[site] for site in sites))
        profile, left = (table[sites] for table in season)
        found.append(
            SpotCase(name=row.name, model=row.model, world=world, law=own, season=(profile, left))
        )
    return tuple(found)


def _drawn(place: int, count: int) -> list[int]:
    """Draw the sites of a row: all where there are no more than are needed."""
    rng = np.random.default_rng(np.random.SeedSequence((place, 48)))
    return [int(place) for place in rng.permutation(count)[:NUM_SITES]]


SYNTHETIC = synthetic_law(np.geomspace(0.3, 3.0, 9).tolist())
"""Nine sites, up for a sixth to nine tenths of the time."""


def _short_stays() -> SiteCourse:
    """A family of other stays: eight sites whose long stays are a third, independent."""
    law = synthetic_law(np.geomspace(0.4, 2.0, 8).tolist(), correlation=0.0)
    return draw_course(law, 2, 11_680, 600.0).thinned(3.0)


def shares_by_reading(
    method: SpotMethod, horizon_h: float, cases: Sequence[SpotCase], most: Table
) -> Table:
    """`shares_of` a rule, case by case in the engine to read: equal, and slow."""
    policies = [method.make([case], horizon_h * HOUR_S) for case in cases]
    pairs = zip(cases, policies, strict=True)
    histories = [run_spot(case.world, policy, 0) for case, policy in pairs]
    shares: Table = np.array([history.tokens for history in histories]) / most
    return shares


def half_width(values: Table, seed: int = 0, num_draws: int = 2000) -> float:
    """Half of the 95 % interval of the mean, by bootstrap over instances."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (num_draws, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(high - low) / 2
