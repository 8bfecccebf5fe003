"""Observations of jobs on sites that come and go: of the job, and of each offer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agents.replanning.spot.look_ahead import SampledRule
from agents.replanning.spot.rules import OfferTables, site_survival
from des.spot.course import DAY_S
from des.spot.offers import Table
from des.spot.spot_law import SpotLaw
from des.spot.world import NOTHING, SpotView, SpotWorld

MOST_OFFERS = 31
"""Sets of five sites; of fewer the others are never allowed."""
NUM_SHARED = 7
OFFER_SIZE = 18
OBSERVATION_SIZE = NUM_SHARED + MOST_OFFERS * OFFER_SIZE

_HOUR_S = 3600.0
_HORIZON_S = 8 * _HOUR_S
_SURVIVAL_S = np.array([0.4, 2.0, 8.0]) * _HOUR_S
_NAT_S = 60.0
"""Time at the best rate by which an offer has to be ahead to be e times as likely. [s]"""
LEAST_PRIOR = -16.0
"""Rating of an offer that is far from the best; all other entries are nearer to 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SpotObserver:
    """Observations of N worlds, (N, D), with what was learnt of their sites beforehand."""

    tables: OfferTables
    figures: Table

    @classmethod
    def of(cls, worlds: Sequence[SpotWorld], laws: Sequence[SpotLaw]) -> "SpotObserver":
        """Observer of worlds with as many sites as each other, and the laws of their sites."""
        figures = np.stack([law.figures for law in laws])
        return cls(tables=OfferTables.of(worlds), figures=figures)

    @cached_property
    def rule(self) -> SampledRule:
        """Rule whose values are the ratings before anything is learnt."""
        return SampledRule(tables=self.tables, figures=self.figures, horizon_s=_HORIZON_S)

    def allowed(self, view: SpotView) -> npt.NDArray[np.bool_]:
        """Offers whose sites may be up, (N, C)."""
        return self.tables.may_be_up(view, 0.0)

    def best_rate(self, view: SpotView) -> Table:
        """Tokens per second of the fastest offer that may be up, (N,)."""
        best: Table = np.where(self.allowed(view), self.tables.tokens_per_s, 0.0).max(axis=1)
        return best

    def observe(self, view: SpotView) -> npt.NDArray[np.float32]:
        """Return observations, all of the order of 1."""
        offers = self._offers(view)
        observation = np.zeros((len(view.held), OBSERVATION_SIZE), np.float32)
        observation[:, :NUM_SHARED] = self._shared(view)
        end = NUM_SHARED + offers.shape[1] * OFFER_SIZE
        observation[:, NUM_SHARED:end] = offers.reshape(len(offers), -1)
        return observation

    def _shared(self, view: SpotView) -> Table:
        angle = 2.0 * math.pi * view.time_s / DAY_S
        return np.stack(
            (
                np.sin(angle),
                np.cos(angle),
                view.held != NOTHING,
                np.minimum(view.debt_s / _HOUR_S, 4.0),
                np.minimum(view.unsaved_s / _HOUR_S, 4.0),
                view.up.mean(axis=1),
                self.best_rate(view) / self._most,
            ),
            axis=1,
        )

    @cached_property
    def _most(self) -> Table:
        most: Table = self.tables.tokens_per_s.max(axis=1)
        return most

    def _offers(self, view: SpotView) -> Table:
        """Entries of each offer, (N, C, F): allowed, prior, and the rest."""
        tables, allowed = self.tables, self.allowed(view)
        values, chance = self.rule.outlook(view)
        values = np.where(allowed, values, -np.inf)
        best = values.max(axis=1, keepdims=True)
        behind = np.where(allowed, values - np.where(np.isfinite(best), best, 0.0), -np.inf)
        prior = np.maximum(behind / (self._most[:, np.newaxis] * _NAT_S), LEAST_PRIOR)
        numbers = np.arange(tables.needs.shape[1])
        survival = site_survival(self.figures[:, :, 0], view.age_s, _SURVIVAL_S)
        weights = tables.needs.astype(np.float64)
        logs = np.log(np.maximum(survival, 1e-6))
        age = np.where(tables.needs, np.log1p(view.age_s / _HOUR_S)[:, np.newaxis], np.inf)
        size = weights.sum(axis=2)
        unseen_s = np.where(tables.needs, np.minimum(view.seen_s, DAY_S)[:, np.newaxis], 0.0)
        columns = (
            allowed,
            prior,
            tables.tokens_per_s / self._most[:, np.newaxis],
            np.log1p(tables.change_s(view) / 600.0),
            *np.moveaxis(np.exp(weights @ logs), 2, 0),
            view.held[:, np.newaxis] == numbers,
            view.home[:, np.newaxis] == numbers,
            np.minimum(tables.checkpoint_s / 600.0, 4.0),
            age.min(axis=2) / 3.0,
            *np.moveaxis(weights @ view.uptimes / size[:, :, np.newaxis], 2, 0),
            np.minimum((weights @ view.losses[:, :, np.newaxis])[:, :, 0] / 10.0, 4.0),
            size / tables.needs.shape[2],
            chance,
            np.log1p(unseen_s.max(axis=2) / _HOUR_S),
        )
        return np.stack(np.broadcast_arrays(*columns), axis=2)
