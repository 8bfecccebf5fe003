"""Compiled engine: many jobs on sites that come and go, each from decision to decision."""

from collections.abc import Sequence

import numpy as np

from des.spot.batch_kernels import (
    DEBT,
    FAILED,
    HELD,
    HELD_S,
    HOME,
    LOSSES,
    LOST,
    MOVES,
    REFUSED,
    SAVED,
    SEED,
    TICK,
    TOKENS,
    UNSAVED,
    USD,
    WORKED,
    WORLD,
    SpotJobs,
    SpotTables,
    advance_all,
    begin_all,
)
from des.spot.offers import Table
from des.spot.world import NOTHING, SpotHistory, SpotPolicy, SpotView, SpotWorld, Whole, decays_of


class SpotBatch:
    """N jobs; job ``i`` is in world ``worlds[world_of[i]]`` with a seed of failures.

    Worlds must have as many sites and offers as each other.
    """

    def __init__(
        self, worlds: Sequence[SpotWorld], world_of: Sequence[int], seeds: Sequence[int]
    ) -> None:
        shapes = {world.offers.needs.shape for world in worlds}
        if len(shapes) != 1:
            raise ValueError(f"spot batch: worlds must have equal offers x sites, got {shapes}")
        self.worlds = tuple(worlds)
        self._tables = _stack(worlds)
        num_jobs, num_sites = len(world_of), worlds[0].offers.num_sites
        places = np.zeros((num_jobs, 9), np.int64)
        places[:, WORLD], places[:, SEED] = world_of, seeds
        places[:, HELD] = places[:, HOME] = NOTHING
        self._jobs = SpotJobs(
            places=places,
            sums=np.zeros((num_jobs, 7)),
            up=np.zeros((num_jobs, num_sites), np.bool_),
            since=np.zeros((num_jobs, num_sites), np.int64),
            seen=np.full((num_jobs, num_sites), -1, np.int64),
            uptimes=np.full((num_jobs, num_sites, 3), 0.5),
            losses=np.zeros((num_jobs, num_sites)),
        )
        begin_all(self._tables, self._jobs)

    @property
    def world_of(self) -> Whole:
        """World of each job, (N,)."""
        return self._jobs.places[:, WORLD]

    @property
    def ticks(self) -> Whole:
        """Tick of each job, (N,)."""
        return self._jobs.places[:, TICK]

    @property
    def is_over(self) -> np.ndarray:
        """Jobs whose course has ended, (N,)."""
        over: np.ndarray = self.ticks >= self._tables.counts[self.world_of, 0]
        return over

    def tokens(self) -> Table:
        """Tokens trained and not lost so far, (N,)."""
        held, sums = self._jobs.places[:, HELD], self._jobs.sums
        rate = self._tables.rates[self.world_of, held, TOKENS]
        unsaved = sums[:, UNSAVED] * rate
        tokens: Table = sums[:, SAVED] + np.where(held == NOTHING, 0.0, unsaved)
        return tokens

    def usd(self) -> Table:
        """Price so far, (N,)."""
        return self._jobs.sums[:, USD].copy()

    def view(self) -> SpotView:
        """Return what is seen of all jobs; of those that are over, what was last seen."""
        jobs, tick = self._jobs, self.ticks[:, np.newaxis]
        tick_s = self._tables.scalars[self.world_of, :1]
        return SpotView(
            time_s=(tick * tick_s)[:, 0],
            held=jobs.places[:, HELD].copy(),
            home=jobs.places[:, HOME].copy(),
            debt_s=jobs.sums[:, DEBT].copy(),
            unsaved_s=jobs.sums[:, UNSAVED].copy(),
            up=jobs.up.copy(),
            age_s=(tick - jobs.since) * tick_s,
            seen_s=np.where(jobs.seen < 0, np.inf, (tick - jobs.seen) * tick_s),
            uptimes=jobs.uptimes.copy(),
            losses=jobs.losses.copy(),
        )

    def advance(self, offers: Whole) -> None:
        """Ask for an offer in each job and go on to its next decision, or to its end.

        Raises
        ------
        ValueError
            If one is no offer.
        """
        most = self._tables.needs.shape[1] - 1
        if offers.shape != self.ticks.shape or offers.min() < NOTHING or offers.max() > most:
            raise ValueError(
                f"spot batch: offers must be {len(self.ticks)} numbers from -1 to {most}, got "
                f"{offers!r}"
            )
        advance_all(self._tables, self._jobs, offers.astype(np.int64))

    def histories(self) -> list[SpotHistory]:
        """Sum up each job."""
        tokens = self.tokens().tolist()
        rows = zip(self._jobs.places.tolist(), self._jobs.sums.tolist(), tokens, strict=True)
        return [
            SpotHistory(
                tokens=total,
                duration_s=self.worlds[places[WORLD]].course.duration_s,
                held_s=sums[HELD_S],
                worked_s=sums[WORKED],
                lost_s=sums[LOST],
                usd=sums[USD],
                num_moves=places[MOVES],
                num_losses=places[LOSSES],
                num_failures=places[FAILED],
                num_refused=places[REFUSED],
            )
            for places, sums, total in rows
        ]


def run_spot_batch(
    worlds: Sequence[SpotWorld], policy: SpotPolicy, seeds: Sequence[int]
) -> list[SpotHistory]:
    """Run a job in each world under a policy that decides for all at once."""
    batch = SpotBatch(worlds, range(len(worlds)), seeds)
    while not batch.is_over.all():
        batch.advance(policy.choose(batch.view()))
    return batch.histories()


def _stack(worlds: Sequence[SpotWorld]) -> SpotTables:
    longest = max(world.course.num_ticks for world in worlds)
    up = np.zeros((len(worlds), longest, worlds[0].offers.num_sites), np.bool_)
    for row, world in enumerate(worlds):
        up[row, : world.course.num_ticks] = world.course.up
    offers = [world.offers for world in worlds]
    columns = [
        (
            one.tokens_per_s,
            one.kept_tokens_per_s / one.tokens_per_s,
            one.checkpoint_s,
            one.period_s,
            one.failures_per_s,
            one.usd_per_s,
        )
        for one in offers
    ]
    return SpotTables(
        up=up,
        needs=np.stack([one.needs for one in offers]),
        rates=np.ascontiguousarray(np.array(columns).transpose(0, 2, 1)),
        move_s=np.stack([one.move_s for one in offers]),
        decays=np.stack([decays_of(longest, world.course.tick_s) for world in worlds]),
        scalars=np.array([(world.course.tick_s, world.notice_s) for world in worlds]),
        counts=np.array(
            [
                (world.course.num_ticks, world.ticks_per_decision, int(world.sees_all))
                for world in worlds
            ]
        ),
    )
