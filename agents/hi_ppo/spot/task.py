"""The task of holding sites that come and go: an offer as the action, at every decision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agents.hi_ppo.spot.observer import MOST_OFFERS, SpotObserver
from agents.replanning.spot.clairvoyant import CourseValues
from des.spot.batch import SpotBatch
from des.spot.offers import Offers, StateSizes
from des.spot.spot_law import SpotLaw, synthetic_law
from des.spot.world import NOTHING, SpotView, SpotWorld

MakeSpotWorld = Callable[[int], tuple[SpotWorld, SpotLaw]]
"""World of an episode's seed, and the law that is known of its sites."""

_NUM_SITES = 5
_NUM_TICKS = 1600
_TICK_S = 195.0


def drawn_spot_world(seed: int) -> tuple[SpotWorld, SpotLaw]:
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
    course = law.course(seed, _NUM_TICKS, _TICK_S)
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

    make_world: MakeSpotWorld = drawn_spot_world
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
