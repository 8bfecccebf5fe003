"""Compiled engine: many jobs on sites that come and go, each from decision to decision."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des.base.jit import inner_kernel, lean_kernel
from des.base.random_numbers import derived_seed
from des.spot.engine import FAILURES
from des.spot.offers import Table
from des.spot.world import NOTHING, SpotHistory, SpotPolicy, SpotView, SpotWorld, Whole, decays_of


class _Tables(NamedTuple):
    """Worlds side by side: W of them with T ticks at most, S sites and C offers."""

    up: np.ndarray  # (W, T, S)
    needs: np.ndarray  # (W, C, S)
    rates: np.ndarray  # (W, C, 6): tokens, share kept, checkpoint, period, failures, price
    move_s: np.ndarray  # (W, C + 1, C)
    decays: np.ndarray  # (W, 4, T + 1)
    scalars: np.ndarray  # (W, 2): tick and notice [s]
    counts: np.ndarray  # (W, 3): ticks, ticks per decision, whether all is seen


class _Jobs(NamedTuple):
    """State of N jobs."""

    places: np.ndarray  # (N, 8): world, seed, tick, held, home, moves, losses, failures, refused
    sums: np.ndarray  # (N, 7): debt, unsaved, tokens saved, held, worked, lost [s], USD
    up: np.ndarray  # (N, S)
    since: np.ndarray  # (N, S)
    seen: np.ndarray  # (N, S)
    uptimes: np.ndarray  # (N, S, 3)
    losses: np.ndarray  # (N, S)


_WORLD, _SEED, _TICK, _HELD, _HOME, _MOVES, _LOSSES, _FAILURES, _REFUSED = range(9)
_DEBT, _UNSAVED, _SAVED, _HELD_S, _WORKED, _LOST, _USD = range(7)
_TOKENS, _KEPT, _CHECKPOINT, _PERIOD, _FAILS, _PRICE = range(6)


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
        self._tables = _stacked(worlds)
        num_jobs, num_sites = len(world_of), worlds[0].offers.num_sites
        places = np.zeros((num_jobs, 9), np.int64)
        places[:, _WORLD], places[:, _SEED] = world_of, seeds
        places[:, _HELD] = places[:, _HOME] = NOTHING
        self._jobs = _Jobs(
            places=places,
            sums=np.zeros((num_jobs, 7)),
            up=np.zeros((num_jobs, num_sites), np.bool_),
            since=np.zeros((num_jobs, num_sites), np.int64),
            seen=np.full((num_jobs, num_sites), -1, np.int64),
            uptimes=np.full((num_jobs, num_sites, 3), 0.5),
            losses=np.zeros((num_jobs, num_sites)),
        )
        self._ticks_s = self._tables.scalars[places[:, _WORLD], 0]
        _begin_all(self._tables, self._jobs)

    @property
    def world_of(self) -> Whole:
        """World of each job, (N,)."""
        return self._jobs.places[:, _WORLD]

    @property
    def ticks(self) -> Whole:
        """Tick that each job has come to, (N,)."""
        return self._jobs.places[:, _TICK]

    @property
    def is_over(self) -> np.ndarray:
        """Jobs whose course has ended, (N,)."""
        over: np.ndarray = self.ticks >= self._tables.counts[self.world_of, 0]
        return over

    def tokens(self) -> Table:
        """Tokens trained and not lost so far, (N,)."""
        held, sums = self._jobs.places[:, _HELD], self._jobs.sums
        rate = self._tables.rates[self.world_of, held, _TOKENS]
        unsaved = sums[:, _UNSAVED] * rate
        tokens: Table = sums[:, _SAVED] + np.where(held == NOTHING, 0.0, unsaved)
        return tokens

    def usd(self) -> Table:
        """Price so far, (N,)."""
        return self._jobs.sums[:, _USD].copy()

    def view(self) -> SpotView:
        """Return what is seen of all jobs; of those that are over, what was last seen."""
        jobs, tick = self._jobs, self.ticks[:, np.newaxis]
        tick_s = self._ticks_s[:, np.newaxis]
        return SpotView(
            time_s=self.ticks * self._ticks_s,
            held=jobs.places[:, _HELD].copy(),
            home=jobs.places[:, _HOME].copy(),
            debt_s=jobs.sums[:, _DEBT].copy(),
            unsaved_s=jobs.sums[:, _UNSAVED].copy(),
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
        _advance_all(self._tables, self._jobs, offers.astype(np.int64))

    def histories(self) -> list[SpotHistory]:
        """Sum up each job."""
        tokens = self.tokens().tolist()
        rows = zip(self._jobs.places.tolist(), self._jobs.sums.tolist(), tokens, strict=True)
        return [
            SpotHistory(
                tokens=total,
                duration_s=self.worlds[places[_WORLD]].course.duration_s,
                held_s=sums[_HELD_S],
                worked_s=sums[_WORKED],
                lost_s=sums[_LOST],
                usd=sums[_USD],
                num_moves=places[_MOVES],
                num_losses=places[_LOSSES],
                num_failures=places[_FAILURES],
                num_refused=places[_REFUSED],
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


def _stacked(worlds: Sequence[SpotWorld]) -> _Tables:
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
    return _Tables(
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


@inner_kernel
def _see(tables: _Tables, jobs: _Jobs, job: int, site: int) -> None:
    world, tick, last = jobs.places[job, 0], jobs.places[job, 2], jobs.seen[job, site]
    if last == tick:
        return
    up = tables.up[world, tick, site]
    gap = tick - last
    jobs.losses[job, site] *= tables.decays[world, 3, gap]
    if last < 0 or up != jobs.up[job, site]:
        if last >= 0 and not up:
            jobs.losses[job, site] += 1.0
        jobs.since[job, site] = tick
    for window in range(3):
        decay = tables.decays[world, window, gap]
        jobs.uptimes[job, site, window] = decay * jobs.uptimes[job, site, window] + (
            1.0 - decay
        ) * (1.0 if up else 0.0)
    jobs.up[job, site], jobs.seen[job, site] = up, tick


@inner_kernel
def _is_up(tables: _Tables, world: int, tick: int, offer: int) -> bool:
    for site in range(tables.up.shape[2]):
        if tables.needs[world, offer, site] and not tables.up[world, tick, site]:
            return False
    return True


@inner_kernel
def _begin(tables: _Tables, jobs: _Jobs, job: int) -> None:
    """See what can be seen; lose what is gone."""
    places, sums = jobs.places[job], jobs.sums[job]
    world, held = places[0], places[3]
    for site in range(tables.up.shape[2]):
        if tables.counts[world, 2] or (held >= 0 and tables.needs[world, held, site]):
            _see(tables, jobs, job, site)
    if held >= 0 and not _is_up(tables, world, places[2], held):
        places[6] += 1
        rates = tables.rates[world, held]
        if sums[0] == 0.0 and tables.scalars[world, 1] >= rates[2]:
            sums[2] += sums[1] * rates[0]
            sums[1] = 0.0
        sums[5] += sums[1]
        sums[0] = sums[1] = 0.0
        places[3] = -1


@inner_kernel
def _ask_for(tables: _Tables, jobs: _Jobs, job: int, offer: int) -> None:
    """Move to an offer if its sites are up."""
    places, sums = jobs.places[job], jobs.sums[job]
    world, held = places[0], places[3]
    if offer < 0 or offer == held:
        return
    for site in range(tables.up.shape[2]):
        if tables.needs[world, offer, site]:
            _see(tables, jobs, job, site)
    if not _is_up(tables, world, places[2], offer):
        places[8] += 1
        return
    write_s = 0.0
    if held >= 0:
        if sums[0] == 0.0:
            write_s = tables.rates[world, held, 2]
        sums[2] += sums[1] * tables.rates[world, held, 0]
        sums[1] = 0.0
    home = places[4] if places[4] >= 0 else tables.move_s.shape[1] - 1
    sums[0] = write_s + tables.move_s[world, home, offer]
    places[3] = offer
    places[5] += 1


@inner_kernel
def _work(tables: _Tables, jobs: _Jobs, job: int) -> None:
    """Pay what is owed of a move, then train."""
    places, sums = jobs.places[job], jobs.sums[job]
    world, held = places[0], places[3]
    if held < 0:
        return
    rates, tick_s = tables.rates[world, held], tables.scalars[world, 0]
    sums[3] += tick_s
    sums[6] += rates[5] * tick_s
    if sums[0] > tick_s:
        sums[0] -= tick_s
        return
    work_s = tick_s - sums[0]
    sums[0] = 0.0
    places[4] = held
    trained_s = work_s * rates[1]
    sums[4] += trained_s
    since_s = sums[1] + trained_s
    written_s = np.floor(since_s / rates[3]) * rates[3]
    sums[2] += written_s * rates[0]
    sums[1] = since_s - written_s
    chance = rates[4] * work_s
    if derived_seed(places[1], FAILURES, places[2]) < chance * 2.0**63:
        places[7] += 1
        sums[5] += sums[1]
        sums[1] = 0.0
        sums[0] = tables.move_s[world, held, held]


@lean_kernel
def _begin_all(tables: _Tables, jobs: _Jobs) -> None:
    for job in range(len(jobs.places)):
        _begin(tables, jobs, job)


@lean_kernel
def _advance_all(tables: _Tables, jobs: _Jobs, offers: np.ndarray) -> None:
    for job in range(len(offers)):
        places = jobs.places[job]
        num_ticks, between, _ = tables.counts[places[0]]
        if places[2] >= num_ticks:
            continue
        _ask_for(tables, jobs, job, offers[job])
        while True:
            _work(tables, jobs, job)
            places[2] += 1
            if places[2] >= num_ticks:
                break
            _begin(tables, jobs, job)
            if places[2] % between == 0 or places[3] < 0:
                break
