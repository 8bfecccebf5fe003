"""Rules that plan ahead: on futures sampled from a fitted law, or on one seasonal forecast.

Both solve the same program over decisions to come, with what each offer would train as gains. A
sampled future is known to the end, so its plan is as good as a clairvoyant's there (hindsight
optimisation, E. Chong, R. Givan, H. Chang, CDC 2000): what is looked for is the best first offer on
the mean. Sites that were not seen for a while are sampled from when they were, which is the Bayes
filter of the law for independent sites.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.replanning.spot.futures import (
    GRID,
    fill_survival_grid,
    sample_futures,
    value_offers,
)
from agents.replanning.spot.rules import RETRY_S, OfferTables, best_offers
from des.dynamics.site_course import DAY_S, SiteCourse
from des.spot.offers import Table
from des.spot.world import SpotView, Whole

STEP_S = 1560.0
"""Step of plans: two decisions. [s]"""
SEASON_STEPS = 64
"""Longest horizon of a forecast. [steps]"""
_LONGEST_UNSEEN_S = 2 * DAY_S
"""Longest time for which the last look at a site counts. [s]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledRule:
    """Model-predictive control on futures sampled from a law.

    Attributes
    ----------
    figures
        Of stays up and down, (N, S, 2, 5).
    horizon_s
        Length of a plan. [s]
    num_futures
        Futures of a decision.
    """

    tables: OfferTables
    figures: Table
    horizon_s: float
    num_futures: int = 8

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,); what is not seen may be up, as likely as it is."""
        return best_offers(self.values(view), self.tables.may_be_up(view, 0.0), view)

    def values(self, view: SpotView) -> Table:
        """Tokens of each offer within the horizon, its move first, on the mean, (N, C)."""
        return self.outlook(view)[0]

    def outlook(self, view: SpotView) -> tuple[Table, Table]:
        """`values`, and in what share of futures all sites of each offer are up now, (N, C)."""
        num_steps = max(round(self.horizon_s / STEP_S), 1)
        shape = (len(view.held), self.num_futures, num_steps, view.up.shape[1])
        futures = np.zeros(shape)
        seen_s = np.minimum(view.seen_s, _LONGEST_UNSEEN_S)
        past = (view.up, view.age_s, seen_s, view.time_s)
        sample_futures(self._survival, past, STEP_S, futures)
        up = np.einsum("ncs,nks->nkc", self.tables.needs, 1.0 - futures[:, :, 0]) == 0.0
        values = _first_values(self.tables, view, futures) / self.num_futures
        return values, up.mean(axis=1)

    @cached_property
    def _survival(self) -> Table:
        """Survival of stays at the lengths of a grid, (N, S, 2, G)."""
        survival = np.empty((*self.figures.shape[:3], GRID))
        fill_survival_grid(self.figures, survival)
        return survival


@dataclass(frozen=True, kw_only=True, eq=False)
class SeasonalRule:
    """Dynamic program on the share of the hour of the day and what is left of today's deviation.

    Attributes
    ----------
    profile
        Share of the time up by hour of the day, (N, S, 24).
    left
        What is left of a deviation after each step, (N, S, `SEASON_STEPS`).
    horizon_s
        Length of a plan. [s]
    """

    tables: OfferTables
    profile: Table
    left: Table
    horizon_s: float

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,)."""
        num_steps = min(max(round(self.horizon_s / STEP_S), 1), SEASON_STEPS)
        steps_s = np.arange(num_steps) * STEP_S
        hours = ((view.time_s[:, np.newaxis] + steps_s) % DAY_S / 3600.0).astype(np.int64)
        rows = np.arange(len(hours))[:, np.newaxis]
        usual = self.profile[rows, :, hours]
        deviates = view.up - usual[:, 0]
        unseen = np.minimum(view.seen_s / STEP_S, SEASON_STEPS - 1.0).astype(np.int64)
        steps = np.minimum(unseen[:, :, np.newaxis] + np.arange(num_steps), SEASON_STEPS - 1)
        left = np.take_along_axis(self.left, steps, axis=2).transpose(0, 2, 1)
        forecast = usual + deviates[:, np.newaxis] * left
        futures = np.clip(forecast, 0.0, 1.0)[:, np.newaxis]
        values = _first_values(self.tables, view, np.ascontiguousarray(futures))
        return best_offers(values, self.tables.may_be_up(view, RETRY_S), view)


def fit_season(course: SiteCourse) -> tuple[Table, Table]:
    """Fit `SeasonalRule.profile` (S, 24) and `SeasonalRule.left` (S, L) to a course."""
    up = course.up.astype(np.float64)
    hours = (np.arange(len(up)) * course.tick_s % DAY_S / 3600.0).astype(np.int64)
    shares = course.shares
    profile = np.stack(
        [up[hours == hour].mean(axis=0) if (hours == hour).any() else shares for hour in range(24)],
        axis=1,
    )
    deviation = up - profile[:, hours].T
    power = np.maximum((deviation**2).mean(axis=0), 1e-9)
    left = np.ones((len(shares), SEASON_STEPS))
    for step in range(1, SEASON_STEPS):
        lag = min(round(step * STEP_S / course.tick_s), len(up) - 1)
        left[:, step] = (deviation[lag:] * deviation[: len(up) - lag]).mean(axis=0) / power
    return profile, np.clip(left, 0.0, 1.0)


def _first_values(tables: OfferTables, view: SpotView, futures: Table) -> Table:
    """Tokens of each first offer over all futures together, (N, C)."""
    rates = tables.tokens_per_s
    values = np.zeros(rates.shape)
    asked = rates * tables.change_s(view), view.held, view.home
    value_offers(tables.needs, (STEP_S * rates, *tables.move_tokens), asked, futures, values)
    return values
