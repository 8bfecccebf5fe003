"""Kernels of `des.spot.batch`: the arithmetic of `des.spot.engine` on arrays."""

from typing import NamedTuple

import numpy as np

from des.base.jit import inner_kernel, lean_kernel
from des.base.random_numbers import derive_seed
from des.spot.engine import FAILURES


class SpotTables(NamedTuple):
    """Worlds side by side: W of them with T ticks at most, S sites and C offers."""

    up: np.ndarray  # (W, T, S)
    needs: np.ndarray  # (W, C, S)
    rates: np.ndarray  # (W, C, 6): tokens, share kept, checkpoint, period, failures, price
    move_s: np.ndarray  # (W, C + 1, C)
    decays: np.ndarray  # (W, 4, T + 1)
    scalars: np.ndarray  # (W, 2): tick and notice [s]
    counts: np.ndarray  # (W, 3): ticks, ticks per decision, whether all is seen


class SpotJobs(NamedTuple):
    """State of N jobs."""

    places: np.ndarray  # (N, 9): world, seed, tick, held, home, moves, losses, failures, refused
    sums: np.ndarray  # (N, 7): debt, unsaved, tokens saved, held, worked, lost [s], USD
    up: np.ndarray  # (N, S)
    since: np.ndarray  # (N, S)
    seen: np.ndarray  # (N, S)
    uptimes: np.ndarray  # (N, S, 3)
    losses: np.ndarray  # (N, S)


WORLD, SEED, TICK, HELD, HOME, MOVES, LOSSES, FAILED, REFUSED = range(9)
DEBT, UNSAVED, SAVED, HELD_S, WORKED, LOST, USD = range(7)
TOKENS, KEPT, CHECKPOINT, PERIOD, FAILS, PRICE = range(6)


@inner_kernel
def _see(tables: SpotTables, jobs: SpotJobs, job: int, site: int) -> None:
    world, tick, last = jobs.places[job, WORLD], jobs.places[job, TICK], jobs.seen[job, site]
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
def _is_up(tables: SpotTables, world: int, tick: int, offer: int) -> bool:
    for site in range(tables.up.shape[2]):
        if tables.needs[world, offer, site] and not tables.up[world, tick, site]:
            return False
    return True


@inner_kernel
def _begin(tables: SpotTables, jobs: SpotJobs, job: int) -> None:
    """See what can be seen; lose what is gone."""
    places, sums = jobs.places[job], jobs.sums[job]
    world, held = places[WORLD], places[HELD]
    for site in range(tables.up.shape[2]):
        if tables.counts[world, 2] or (held >= 0 and tables.needs[world, held, site]):
            _see(tables, jobs, job, site)
    if held >= 0 and not _is_up(tables, world, places[TICK], held):
        places[LOSSES] += 1
        rates = tables.rates[world, held]
        if sums[DEBT] == 0.0 and tables.scalars[world, 1] >= rates[CHECKPOINT]:
            sums[SAVED] += sums[UNSAVED] * rates[TOKENS]
            sums[UNSAVED] = 0.0
        sums[LOST] += sums[UNSAVED]
        sums[DEBT] = sums[UNSAVED] = 0.0
        places[HELD] = -1


@inner_kernel
def _ask_for(tables: SpotTables, jobs: SpotJobs, job: int, offer: int) -> None:
    """Move to an offer if its sites are up."""
    places, sums = jobs.places[job], jobs.sums[job]
    world, held = places[WORLD], places[HELD]
    if offer < 0 or offer == held:
        return
    for site in range(tables.up.shape[2]):
        if tables.needs[world, offer, site]:
            _see(tables, jobs, job, site)
    if not _is_up(tables, world, places[TICK], offer):
        places[REFUSED] += 1
        return
    write_s = 0.0
    if held >= 0:
        if sums[DEBT] == 0.0:
            write_s = tables.rates[world, held, CHECKPOINT]
        sums[SAVED] += sums[UNSAVED] * tables.rates[world, held, TOKENS]
        sums[UNSAVED] = 0.0
    home = places[HOME] if places[HOME] >= 0 else tables.move_s.shape[1] - 1
    sums[DEBT] = write_s + tables.move_s[world, home, offer]
    places[HELD] = offer
    places[MOVES] += 1


@inner_kernel
def _work(tables: SpotTables, jobs: SpotJobs, job: int) -> None:
    """Pay what is owed of a move, then train."""
    places, sums = jobs.places[job], jobs.sums[job]
    world, held = places[WORLD], places[HELD]
    if held < 0:
        return
    rates, tick_s = tables.rates[world, held], tables.scalars[world, 0]
    sums[HELD_S] += tick_s
    sums[USD] += rates[PRICE] * tick_s
    if sums[DEBT] > tick_s:
        sums[DEBT] -= tick_s
        return
    work_s = tick_s - sums[DEBT]
    sums[DEBT] = 0.0
    places[HOME] = held
    trained_s = work_s * rates[KEPT]
    sums[WORKED] += trained_s
    since_s = sums[UNSAVED] + trained_s
    written_s = np.floor(since_s / rates[PERIOD]) * rates[PERIOD]
    sums[SAVED] += written_s * rates[TOKENS]
    sums[UNSAVED] = since_s - written_s
    chance = rates[FAILS] * work_s
    if derive_seed(places[SEED], FAILURES, places[TICK]) < chance * 2.0**63:
        places[FAILED] += 1
        sums[LOST] += sums[UNSAVED]
        sums[UNSAVED] = 0.0
        sums[DEBT] = tables.move_s[world, held, held]


@lean_kernel
def begin_all(tables: SpotTables, jobs: SpotJobs) -> None:
    """Begin the first tick of every job."""
    for job in range(len(jobs.places)):
        _begin(tables, jobs, job)


@lean_kernel
def advance_all(tables: SpotTables, jobs: SpotJobs, offers: np.ndarray) -> None:
    """Ask for an offer in each job, (N,), and go on to its next decision or its end."""
    for job in range(len(offers)):
        places = jobs.places[job]
        num_ticks, between, _ = tables.counts[places[WORLD]]
        if places[TICK] >= num_ticks:
            continue
        _ask_for(tables, jobs, job, offers[job])
        while True:
            _work(tables, jobs, job)
            places[TICK] += 1
            if places[TICK] >= num_ticks:
                break
            _begin(tables, jobs, job)
            if places[TICK] % between == 0 or places[HELD] < 0:
                break
