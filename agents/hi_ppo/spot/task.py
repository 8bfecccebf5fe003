"""The task of holding sites that come and go: what is observed, and the offer that is asked for."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agents.replanning.spot.clairvoyant import CourseValues
from agents.replanning.spot.look_ahead import SampledRule
from agents.replanning.spot.rules import OfferTables, site_survival
from des.dynamics.site_course import DAY_S
from des.dynamics.site_law import SpotLaw
from des.spot.batch import SpotBatch
from des.spot.offers import Offers, StateSizes, Table
from des.spot.spot_law import draw_course, synthetic_law
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
        """Observer of worlds with as many sites as each other, and the laws of their sites.

        Raises
        ------
        ValueError
            If there are more offers than an observation has room for.
        """
        if (count := max(len(world.offers.names) for world in worlds)) > MOST_OFFERS:
            raise ValueError(f"spot observer: offers must be at most {MOST_OFFERS}, got {count}")
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


MakeSpotWorld = Callable[[int], tuple[SpotWorld, SpotLaw]]
"""World of an episode's seed, and the law that is known of its sites."""

_NUM_SITES = 5
_NUM_TICKS = 1600
_TICK_S = 195.0


def draw_spot_world(seed: int) -> tuple[SpotWorld, SpotLaw]:
    """Draw five equal sites of 64 GPUs, up for more or less of the time, for 3.6 days.

    A model of 70 billion parameters; links of 2 to 10 Gbit/s.
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, 49)))
    law = synthetic_law(np.exp(rng.uniform(-1.2, 1.2, _NUM_SITES)).tolist())
    sets = np.arange(1, 2**_NUM_SITES)[:, np.newaxis] >> np.arange(_NUM_SITES) & 1
    size = sets.sum(axis=1)
    rate = rng.uniform(2e9, 10e9, (_NUM_SITES, _NUM_SITES)) / 8
    sizes = StateSizes(
        state_bytes=9.8e11,
        storage_bytes_per_s=np.full(_NUM_SITES, 8e9),
        link_bytes_per_s=np.minimum(rate, rate.T),
        restart_s=120.0,
    )
    offers = Offers.of_sets(
        ["+".join(map(str, np.flatnonzero(row))) for row in sets],
        sets > 0,
        2e4 * size**0.8,
        sets / size[:, np.newaxis],
        sizes,
        gpus=np.full(_NUM_SITES, 64),
        usd_per_gpu_s=np.full(_NUM_SITES, 1.5 / 3600),
        losses_per_s=0.4 / 3600,
    )
    course = draw_course(law, seed, _NUM_TICKS, _TICK_S)
    return SpotWorld(course=course, offers=offers), law


@dataclass(slots=True, kw_only=True)
class SpotTask:
    """Episodes of a job, stepped by the offer to ask for.

    The reward of a step is what it takes from the most that could be trained until the end of the
    course if it were known, and the price at ``tokens_per_usd`` (0: it does not count), over the
    tokens of an hour at the best rate. So of an episode rewards add up to the tokens less those of
    a clairvoyant: potentials of states change no best policy (A. Ng, D. Harada, S. Russell, ICML
    1999), and what is bad luck counts little.
    """

    make_world: MakeSpotWorld = draw_spot_world
    tokens_per_usd: float = 0.0
    _observer: SpotObserver | None = field(default=None, init=False)
    _batch: SpotBatch | None = field(default=None, init=False)
    _view: SpotView | None = field(default=None, init=False)
    _values: CourseValues | None = field(default=None, init=False)

    def reset(self, seed: int) -> npt.NDArray[np.float32]:
        """Begin the episode of a seed and return its first observation."""
        world, law = self.make_world(seed)
        self._observer = SpotObserver.of([world], [law])
        self._batch = SpotBatch([world], [0], [seed])
        self._view, self._values = self._batch.view(), CourseValues.of(world)
        first: npt.NDArray[np.float32] = self._observer.observe(self._view)[0]
        return first

    def step(self, choices: Sequence[int]) -> tuple[npt.NDArray[np.float32], float, bool]:
        """Ask for an offer; return observation, reward, and whether the course has ended.

        An offer that cannot be up changes nothing.

        Raises
        ------
        ValueError
            If the choice is none, or no episode is under way.
        """
        observer, batch, view, values = self._observer, self._batch, self._view, self._values
        if observer is None or batch is None or view is None or values is None:
            raise ValueError("spot task: reset must be called first")
        (offer,) = choices
        if not 0 <= offer < MOST_OFFERS:
            raise ValueError(f"spot task: offer must be from 0 to {MOST_OFFERS - 1}, got {offer!r}")
        allowed = observer.allowed(view)[0]
        is_allowed = offer < len(allowed) and bool(allowed[offer])
        before = self._worth(batch) + values.left(view)
        batch.advance(np.array([offer if is_allowed else NOTHING]))
        self._view = batch.view()
        after = self._worth(batch) + values.left(self._view)
        reward = (after - before) / (float(observer.tables.tokens_per_s.max()) * 3600.0)
        is_over = bool(batch.is_over[0])
        if is_over:
            self._batch = None
        return observer.observe(self._view)[0], reward, is_over

    def _worth(self, batch: SpotBatch) -> float:
        return float(batch.tokens()[0] - self.tokens_per_usd * batch.usd()[0])
