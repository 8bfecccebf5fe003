"""Tables of plans on spot GPUs, and the rules that choose among them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from des.base.jit import kernel
from des.dynamics.site_course import Flags
from des.spot.offers import Table
from des.spot.stay_kernels import stay_survival
from des.spot.world import NOTHING, SpotView, SpotWorld, Whole


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferTables:
    """Offers of N worlds, C each over S sites.

    Attributes
    ----------
    needs
        Sites that must be up, (N, C, S).
    tokens_per_s
        Checkpoints counted, (N, C).
    checkpoint_s, period_s
        Of each offer, (N, C). [s]
    move_s
        From the state of an offer, or in the last row from outside, (N, C + 1, C). [s]
    without
        Offer that is left if a site of an offer goes, (N, C, S); -1 where there is none.
    """

    needs: Flags
    tokens_per_s: Table
    checkpoint_s: Table
    period_s: Table
    move_s: Table
    without: Whole

    @classmethod
    def of(cls, worlds: Sequence[SpotWorld]) -> Self:
        """Tables of worlds with as many sites and offers as each other."""
        offers = [world.offers for world in worlds]
        return cls(
            needs=np.stack([one.needs for one in offers]),
            tokens_per_s=np.stack([one.kept_tokens_per_s for one in offers]),
            checkpoint_s=np.stack([one.checkpoint_s for one in offers]),
            period_s=np.stack([one.period_s for one in offers]),
            move_s=np.stack([one.move_s for one in offers]),
            without=np.stack([_without(one.needs) for one in offers]),
        )

    @cached_property
    def move_tokens(self) -> tuple[Table, Table]:
        """Tokens not trained for a move from row to column, (N, C, C), without a checkpoint and
        with one before; on the diagonal of the latter nothing.
        """
        rates, moves_s = self.tokens_per_s[:, np.newaxis], self.move_s[:, :-1]
        written = (moves_s + self.checkpoint_s[:, :, np.newaxis]) * rates
        own = np.arange(written.shape[1])
        written[:, own, own] = 0.0
        return moves_s * rates, written

    def change_s(self, view: SpotView) -> Table:
        """Time before each offer trains, (N, C): what is owed for the one held, else a move. [s]"""
        rows = np.arange(len(view.held))
        is_held = view.held != NOTHING
        writes = is_held & (view.debt_s == 0.0)
        write_s = np.where(writes, self.checkpoint_s[rows, view.held], 0.0)
        change_s: Table = self.move_s[rows, view.home] + write_s[:, np.newaxis]
        change_s[rows[is_held], view.held[is_held]] = view.debt_s[is_held]
        return change_s

    def may_be_up(self, view: SpotView, retry_s: float) -> Flags:
        """Offers, (N, C), all of whose sites were up when last seen, or not seen for a while."""
        site_up = view.up | (view.seen_s > retry_s)
        return np.asarray((~self.needs | site_up[:, np.newaxis]).all(axis=2))


def _without(needs: Flags) -> Whole:
    """Offer that needs the other sites of each offer, (C, S); -1 where there is none."""
    place_of = {tuple(row): place for place, row in enumerate(needs.tolist())}
    left = np.full(needs.shape, NOTHING)
    for place, site in zip(*np.nonzero(needs), strict=True):
        row = needs[place].copy()
        row[site] = False
        left[place, site] = place_of.get(tuple(row.tolist()), NOTHING)
    return left


def best_offers(scores: Table, allowed: Flags, view: SpotView) -> Whole:
    """Offer of the highest score among those allowed; of equals the one held; (N,)."""
    masked = np.where(allowed, scores, -np.inf)
    best = masked.argmax(axis=1)
    rows = np.arange(len(best))
    stays = (view.held != NOTHING) & (masked[rows, view.held] >= masked[rows, best])
    chosen: Whole = np.where(stays, view.held, best)
    return np.where(allowed.any(axis=1), chosen, NOTHING)


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
        Figures of stays up, (N, S, 5), see `des.dynamics.stay_law.StayLaw.figures`.

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
