"""Tables of the offers of N worlds side by side, and what all rules ask of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from des.spot.course import Flags
from des.spot.offers import Table
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
