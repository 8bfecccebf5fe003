"""Engine to read: a training job on sites that come and go, tick by tick.

At the begin of a tick the job sees what it holds (or all sites), loses what is gone, and maybe
decides; then it works until the tick ends. `des.spot.batch` does the same, compiled, to the bit.
"""

import math
from collections.abc import Callable

import numpy as np

from des.base.checks import require_seed
from des.base.random_numbers import derive_seed
from des.spot.offers import Table
from des.spot.world import NOTHING, SpotHistory, SpotPolicy, SpotView, SpotWorld, decays_of

FAILURES = 18
"""Stream of the random numbers of failures."""


def run_spot(
    world: SpotWorld,
    policy: SpotPolicy,
    seed: int,
    *,
    watch: Callable[[int], object] | None = None,
) -> SpotHistory:
    """Run a job under a policy; the seed is that of server failures.

    ``watch`` is told the offer that is held in each tick.

    Raises
    ------
    ValueError
        If the policy chooses what is no offer.
    """
    require_seed("spot run", "seed", seed)
    job = _Job(world, seed)
    for tick in range(world.course.num_ticks):
        job.begin(tick)
        if tick % world.ticks_per_decision == 0 or job.held == NOTHING:
            (offer,) = np.asarray(policy.choose(job.view(tick))).tolist()
            job.ask_for(offer, tick)
        if watch is not None:
            watch(job.held)
        job.work(tick)
    return job.history()


class _Job:
    """State of a job and of what it knows."""

    def __init__(self, world: SpotWorld, seed: int) -> None:
        self._world, self._offers, self._seed = world, world.offers, seed
        self._tick_s = world.course.tick_s
        self._kept_share = self._offers.kept_tokens_per_s / self._offers.tokens_per_s
        self._decays = decays_of(world.course.num_ticks, self._tick_s)
        num_sites = world.offers.num_sites
        self.held = self._home = NOTHING
        self._debt_s = self._unsaved_s = 0.0
        self._saved_tokens = self._held_s = self._worked_s = self._lost_s = self._usd = 0.0
        self._num_moves = self._num_losses = self._num_failures = self._num_refused = 0
        self._up = np.zeros(num_sites, np.bool_)
        self._since, self._seen = np.zeros(num_sites, np.int64), np.full(num_sites, -1)
        self._uptimes, self._losses = np.full((num_sites, 3), 0.5), np.zeros(num_sites)

    def begin(self, tick: int) -> None:
        """See what can be seen; lose what is gone."""
        holds = self.held != NOTHING
        for site in range(self._offers.num_sites):
            if self._world.sees_all or (holds and self._offers.needs[self.held, site]):
                self._see(site, tick)
        if holds and not self._is_up(self.held, tick):
            self._num_losses += 1
            if self._debt_s == 0.0 and self._world.notice_s >= self._checkpoint_s:
                self._save()
            self._lose()
            self.held = NOTHING

    def ask_for(self, offer: int, tick: int) -> None:
        """Move to an offer if its sites are up."""
        if not NOTHING <= offer < len(self._offers.names):
            raise ValueError(
                f"spot run: offer must be from -1 to {len(self._offers.names) - 1}, got {offer!r}"
            )
        if offer in (NOTHING, self.held):
            return
        for site in np.flatnonzero(self._offers.needs[offer]).tolist():
            self._see(site, tick)
        if not self._is_up(offer, tick):
            self._num_refused += 1
            return
        writes = self.held != NOTHING and self._debt_s == 0.0
        write_s = self._checkpoint_s if writes else 0.0
        self._save()
        self._debt_s = write_s + float(self._offers.move_s[self._home, offer])
        self.held = offer
        self._num_moves += 1

    def work(self, tick: int) -> None:
        """Pay what is owed of a move, then train."""
        if self.held == NOTHING:
            return
        self._held_s += self._tick_s
        self._usd += float(self._offers.usd_per_s[self.held]) * self._tick_s
        if self._debt_s > self._tick_s:
            self._debt_s -= self._tick_s
            return
        work_s = self._tick_s - self._debt_s
        self._debt_s, self._home = 0.0, self.held
        trained_s = work_s * float(self._kept_share[self.held])
        self._worked_s += trained_s
        period_s = float(self._offers.period_s[self.held])
        since_s = self._unsaved_s + trained_s
        written_s = math.floor(since_s / period_s) * period_s
        self._saved_tokens += written_s * self._tokens_per_s
        self._unsaved_s = since_s - written_s
        chance = float(self._offers.failures_per_s[self.held]) * work_s
        if derive_seed(self._seed, FAILURES, tick) < chance * 2.0**63:
            self._num_failures += 1
            self._lose()
            self._debt_s = float(self._offers.move_s[self.held, self.held])

    def view(self, tick: int) -> SpotView:
        """View of one world."""
        seen_s = np.where(self._seen < 0, np.inf, (tick - self._seen) * self._tick_s)
        age_s: Table = np.float64(self._tick_s) * (tick - self._since)
        return SpotView(
            time_s=np.array([tick * self._tick_s]),
            held=np.array([self.held]),
            home=np.array([self._home]),
            debt_s=np.array([self._debt_s]),
            unsaved_s=np.array([self._unsaved_s]),
            up=self._up[np.newaxis].copy(),
            age_s=age_s[np.newaxis],
            seen_s=seen_s[np.newaxis],
            uptimes=self._uptimes[np.newaxis].copy(),
            losses=self._losses[np.newaxis].copy(),
        )

    def history(self) -> SpotHistory:
        """Sum up."""
        unsaved = self._unsaved_s * self._tokens_per_s if self.held != NOTHING else 0.0
        return SpotHistory(
            tokens=self._saved_tokens + unsaved,
            duration_s=self._world.course.duration_s,
            held_s=self._held_s,
            worked_s=self._worked_s,
            lost_s=self._lost_s,
            usd=self._usd,
            num_moves=self._num_moves,
            num_losses=self._num_losses,
            num_failures=self._num_failures,
            num_refused=self._num_refused,
        )

    @property
    def _checkpoint_s(self) -> float:
        return float(self._offers.checkpoint_s[self.held])

    @property
    def _tokens_per_s(self) -> float:
        return float(self._offers.tokens_per_s[self.held])

    def _is_up(self, offer: int, tick: int) -> bool:
        return bool(self._world.course.up[tick, self._offers.needs[offer]].all())

    def _save(self) -> None:
        """Write a checkpoint of all that was done."""
        if self.held != NOTHING:
            self._saved_tokens += self._unsaved_s * self._tokens_per_s
            self._unsaved_s = 0.0

    def _lose(self) -> None:
        """Fall back to the last checkpoint."""
        self._lost_s += self._unsaved_s
        self._unsaved_s = 0.0
        self._debt_s = 0.0

    def _see(self, site: int, tick: int) -> None:
        """Take note of whether a site is up."""
        up, last = bool(self._world.course.up[tick, site]), int(self._seen[site])
        if last == tick:
            return
        decay: Table = self._decays[:, tick - last]
        self._losses[site] *= decay[3]
        if last < 0 or up != self._up[site]:
            self._losses[site] += float(last >= 0 and not up)
            self._since[site] = tick
        self._uptimes[site] = decay[:3] * self._uptimes[site] + (1.0 - decay[:3]) * float(up)
        self._up[site], self._seen[site] = up, tick
