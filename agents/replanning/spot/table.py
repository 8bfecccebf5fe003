"""Rules that decide on sites that come and go, one row each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from agents.replanning.spot.clairvoyant import most_tokens
from agents.replanning.spot.look_ahead import SampledRule, SeasonalRule
from agents.replanning.spot.rules import HysteresisRule, OfferTables, SurvivalRule
from des.dynamics.site_law import SpotLaw
from des.spot.batch import run_spot_batch
from des.spot.offers import Table
from des.spot.world import SpotPolicy, SpotWorld

HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True, eq=False)
class SpotCase:
    """A world, and what was learnt beforehand about its sites.

    ``law`` and ``season`` are fitted to what came before, or to other sites; None: no season was.
    """

    name: str
    model: str
    world: SpotWorld
    law: SpotLaw
    season: tuple[Table, Table] | None = None


_HORIZONS_H = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotMethod:
    """A rule: what makes it for some cases with a horizon [s], and the horizons to choose from."""

    make: Callable[[Sequence[SpotCase], float], SpotPolicy]
    horizons_h: tuple[float, ...] = _HORIZONS_H


def _tables(cases: Sequence[SpotCase]) -> OfferTables:
    return OfferTables.of([case.world for case in cases])


def _seasonal(cases: Sequence[SpotCase], horizon_s: float) -> SeasonalRule:
    seasons = [case.season for case in cases if case.season is not None]
    if len(seasons) < len(cases):
        raise ValueError("seasonal: cases must have a season, got some without")
    profile, left = (np.stack([season[side] for season in seasons]) for side in (0, 1))
    return SeasonalRule(tables=_tables(cases), profile=profile, left=left, horizon_s=horizon_s)


def _hysteresis(cases: Sequence[SpotCase], horizon_s: float) -> HysteresisRule:
    return HysteresisRule(tables=_tables(cases), horizon_s=horizon_s)


def _survival(cases: Sequence[SpotCase], horizon_s: float) -> SurvivalRule:
    stays_up = np.stack([case.law.figures[:, 0] for case in cases])
    return SurvivalRule(tables=_tables(cases), stays_up=stays_up, horizon_s=horizon_s)


def _sample(cases: Sequence[SpotCase], horizon_s: float) -> SampledRule:
    figures = np.stack([case.law.figures for case in cases])
    return SampledRule(tables=_tables(cases), figures=figures, horizon_s=horizon_s)


METHODS: Mapping[str, SpotMethod] = MappingProxyType(
    {
        "greedy": SpotMethod(make=_hysteresis, horizons_h=(np.inf,)),
        "hysteresis": SpotMethod(make=_hysteresis),
        "survival": SpotMethod(make=_survival),
        "seasonal": SpotMethod(make=_seasonal),
        "sampled": SpotMethod(make=_sample, horizons_h=(2.0, 4.0, 8.0)),
    }
)
"""All rules, in the order of tables."""


def clairvoyant_tokens(cases: Sequence[SpotCase]) -> Table:
    """Most tokens of each case, (N,)."""
    return np.array([most_tokens(case.world) for case in cases])


def shares_of(policy: SpotPolicy, cases: Sequence[SpotCase], most: Table) -> Table:
    """Tokens of a policy over those of the clairvoyant, (N,); server failures of seed 0."""
    histories = run_spot_batch([case.world for case in cases], policy, [0] * len(cases))
    shares: Table = np.array([history.tokens for history in histories]) / most
    return shares


def tune_horizon_h(method: SpotMethod, cases: Sequence[SpotCase], most: Table) -> float:
    """Horizon with the highest mean share on the cases for tuning. [h]"""
    if len(method.horizons_h) == 1:
        return method.horizons_h[0]
    means = [
        float(shares_of(method.make(cases, horizon_h * HOUR_S), cases, most).mean())
        for horizon_h in method.horizons_h
    ]
    return method.horizons_h[int(np.argmax(means))]
