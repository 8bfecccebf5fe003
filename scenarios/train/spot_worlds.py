"""Worlds to train on of sites that come and go: traces thinned and stretched, and drawn laws."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from des.dynamics.site_course import SiteCourse
from des.dynamics.site_law import SpotLaw
from des.spot.law_fit import fit_spot_law
from des.spot.spot_law import draw_course, synthetic_law
from des.spot.world import SpotWorld
from scenarios.reproduce.spot_methods import DECISION_S
from scenarios.reproduce.spot_sites import NUM_SITES, SiteSets

_NUM_TICKS = 1600
_MOST_FACTOR = 5.0
_LOG_SCALES = 1.2


@dataclass(frozen=True, kw_only=True, eq=False)
class SpotTrainingWorlds:
    """World of an episode's seed, 3.6 days of ticks of 195 s.

    Half of them are parts of the ``known`` course, if there is one, thinned and stretched by
    factors of 1 to 5, with the law that was fitted to it, of the sites or pooled; the others are
    of drawn laws.
    """

    rows: Sequence[SiteSets]
    known: SiteCourse | None
    laws: tuple[SpotLaw, SpotLaw] | None
    sees_all: bool

    @classmethod
    def of(
        cls, rows: Sequence[SiteSets], known: SiteCourse | None, *, sees_all: bool = True
    ) -> "SpotTrainingWorlds":
        """Fit the laws of a course."""
        laws = None if known is None else (fit_spot_law(known), fit_spot_law(known, pooled=True))
        return cls(rows=rows, known=known, laws=laws, sees_all=sees_all)

    def __call__(self, seed: int) -> tuple[SpotWorld, SpotLaw]:
        """Return the world, and the law that is known of its sites."""
        rng = np.random.default_rng(np.random.SeedSequence((seed, 50)))
        row = self.rows[int(rng.integers(len(self.rows)))]
        factor = float(np.exp(rng.uniform(0.0, np.log(_MOST_FACTOR))))
        is_traced = bool(rng.random() < 0.5)
        if self.known is None or self.laws is None or not is_traced:
            law = synthetic_law(np.exp(rng.uniform(-1.0, 1.0, NUM_SITES) * _LOG_SCALES).tolist())
            course = draw_course(law, seed, _NUM_TICKS, 195.0)
        else:
            places = rng.permutation(len(self.known.sites))[:NUM_SITES].tolist()
            first = float(rng.uniform(0.0, 0.8))
            course = self.known.of_sites(places).part(first, first + 0.2)
            course = course.thinned(factor) if rng.random() < 0.5 else course.stretched(factor)
            course = course.part(0.0, min(_NUM_TICKS / course.num_ticks, 1.0))
            fitted = self.laws[int(rng.integers(2))]
            law = SpotLaw(sites=tuple(fitted.sites[place] for place in places))
        between = round(DECISION_S / course.tick_s)
        world = SpotWorld(
            course=course,
            offers=row.offers(),
            ticks_per_decision=between,
            sees_all=self.sees_all,
        )
        return world, law
