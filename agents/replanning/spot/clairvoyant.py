"""Most that can be trained on a course that is known: dynamic program over ticks and offers."""

import math

import numpy as np

from des.base.jit import kernel
from des.spot.world import SpotWorld


def most_tokens(world: SpotWorld) -> float:
    """Tokens of the best decisions at every tick, with servers that do not fail and no work lost.

    Notes
    -----
    Backward over ticks: of each offer whose sites have the state, whether it is held, the best of
    going on, waiting, and any move that can be completed before a site of the new offer goes. So
    moves take whole stretches of ticks, as in the engines. An upper bound for every policy: only
    failures and work lost at short notice are left out.
    """
    offers, course = world.offers, world.course
    up = np.asarray((~offers.needs | course.up[:, np.newaxis]).all(axis=2))
    rates, tables = offers.kept_tokens_per_s, (offers.checkpoint_s, offers.move_s)
    return float(_most(up, rates, tables[0], tables[1], course.tick_s))


@kernel
def _most(
    up: np.ndarray, rates: np.ndarray, checkpoint_s: np.ndarray, move_s: np.ndarray, tick_s: float
) -> float:
    num_ticks, num_offers = up.shape
    none = num_offers
    runs, waits = np.zeros((num_ticks + 1, num_offers)), np.zeros((num_ticks + 1, none + 1))
    lasts = np.zeros(num_offers, np.int64)  # ticks for which an offer stays up from here on
    for tick in range(num_ticks - 1, -1, -1):
        for offer in range(num_offers):
            lasts[offer] = lasts[offer] + 1 if up[tick, offer] else 0
        for home in range(none + 1):
            moved = _best_move(rates, move_s[home], lasts, runs[tick:], tick_s)
            waits[tick, home] = max(waits[tick + 1, home], moved)
        for home in range(num_offers):
            if up[tick, home]:
                paid_s = move_s[home] + checkpoint_s[home]
                moved = _best_move(rates, paid_s, lasts, runs[tick:], tick_s)
                stays = tick_s * rates[home] + runs[tick + 1, home]
                runs[tick, home] = max(stays, moved, waits[tick + 1, home])
            else:
                runs[tick, home] = waits[tick, home]
    most: float = waits[0, none]
    return most


@kernel
def _best_move(
    rates: np.ndarray, paid_s: np.ndarray, lasts: np.ndarray, runs: np.ndarray, tick_s: float
) -> float:
    """Most to come by a move that ends before its offer goes; rows of ``runs`` begin now."""
    best = 0.0
    for offer in range(len(rates)):
        needed = max(math.ceil(paid_s[offer] / tick_s), 1)
        if needed <= lasts[offer]:
            gain = (needed * tick_s - paid_s[offer]) * rates[offer]
            best = max(best, gain + runs[needed, offer])
    return best
