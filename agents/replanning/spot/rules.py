"""Rules without sampling: greedy, hysteresis, and survival by age."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.replanning.spot.tables import OfferTables, best_offers
from des.base.jit import kernel
from des.spot.offers import Table
from des.spot.stay_law import stay_survival
from des.spot.world import SpotView, Whole

RETRY_S = 1800.0
"""A site that was down is tried again after half an hour without a look: about the median of stays
down. [s]"""

_POINTS = 8
"""Points at which survival is taken within a horizon."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HysteresisRule:
    """Holds what trains most tokens within a horizon, moves first, if nothing goes away.

    An infinite horizon is greedy: always the fastest that is up.
    """

    tables: OfferTables
    horizon_s: float

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,)."""
        if math.isinf(self.horizon_s):
            scores = self.tables.tokens_per_s
        else:
            left_s = self.horizon_s - self.tables.change_s(view)
            scores = self.tables.tokens_per_s * left_s
        return best_offers(scores, self.tables.may_be_up(view, RETRY_S), view)


@dataclass(frozen=True, kw_only=True, eq=False)
class SurvivalRule:
    """As `HysteresisRule`, but counts how long each site is likely to last.

    Attributes
    ----------
    stays_up
        Figures of stays up, (N, S, 5), see `des.spot.stay_law.StayLaw.figures`.

    Notes
    -----
    Tokens of an offer within the horizon ``H``, less for each of its sites, by its own law given
    its age: the rate that goes with it for the time by which it falls short of ``H`` on the mean,
    and, by the chance that it goes at all, the move to the offer that is left (where none is left,
    a mean move). So sites that have lasted are preferred.
    """

    tables: OfferTables
    stays_up: Table
    horizon_s: float

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,)."""
        tables = self.tables
        lasts_s, survives = lasting(self.stays_up, view.age_s, self.horizon_s)
        tokens = tables.tokens_per_s * (self.horizon_s - tables.change_s(view))
        short = np.einsum("ncs,ns->nc", self._less_per_s, self.horizon_s - lasts_s)
        moves = np.einsum("ncs,ns->nc", self._moved, 1.0 - survives)
        return best_offers(tokens - short - moves, tables.may_be_up(view, RETRY_S), view)

    @cached_property
    def _left(self) -> Table:
        """Rate of what is left without each site, (N, C, S). [tokens/s]"""
        without, rates = self.tables.without, self.tables.tokens_per_s
        rows = np.arange(len(rates))[:, np.newaxis, np.newaxis]
        return np.where(without < 0, 0.0, rates[rows, without])

    @cached_property
    def _less_per_s(self) -> Table:
        less = self.tables.tokens_per_s[:, :, np.newaxis] - self._left
        return np.where(self.tables.needs, np.maximum(less, 0.0), 0.0)

    @cached_property
    def _moved(self) -> Table:
        """Tokens that the move costs if a site goes, (N, C, S)."""
        tables = self.tables
        moves_s = np.take_along_axis(tables.move_s[:, :-1], np.maximum(tables.without, 0), axis=2)
        mean_s = tables.move_s[:, :-1].mean(axis=2) * tables.tokens_per_s
        alone = np.broadcast_to(mean_s[:, :, np.newaxis], moves_s.shape)
        cost = np.where(tables.without < 0, alone, moves_s * self._left)
        return np.where(tables.needs, cost, 0.0)


def lasting(stays_up: Table, age_s: Table, horizon_s: float) -> tuple[Table, Table]:
    """Mean time within a horizon [s], and probability, that sites last, (N, S) both."""
    lengths_s = horizon_s * (np.arange(_POINTS) + 0.5) / _POINTS
    survival = site_survival(stays_up, age_s, np.append(lengths_s, horizon_s))
    return survival[:, :, :-1].mean(axis=2) * horizon_s, survival[:, :, -1]


def site_survival(stays_up: Table, age_s: Table, lengths_s: Table) -> Table:
    """Probability that sites of an age (N, S) last for some lengths more, (N, S, L)."""
    survival = np.empty((*age_s.shape, len(lengths_s)))
    _fill_survival(stays_up, age_s, lengths_s, survival)
    return survival


@kernel
def _fill_survival(
    stays_up: np.ndarray, age_s: np.ndarray, lengths_s: np.ndarray, survival: np.ndarray
) -> None:
    for row in range(survival.shape[0]):
        for site in range(survival.shape[1]):
            figures = stays_up[row, site]
            so_far = max(stay_survival(figures, age_s[row, site]), 1e-12)
            for place in range(len(lengths_s)):
                later = stay_survival(figures, age_s[row, site] + lengths_s[place])
                survival[row, site, place] = later / so_far
