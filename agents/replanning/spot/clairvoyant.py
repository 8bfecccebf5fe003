"""Most that can be trained on a course that is known: dynamic program over ticks and offers."""

import math
from dataclasses import dataclass

import numpy as np

from des.base.jit import kernel
from des.spot.offers import Table
from des.spot.world import NOTHING, SpotView, SpotWorld, Whole


def most_tokens(world: SpotWorld) -> float:
    """Tokens of the best decisions at every tick, with servers that do not fail and no work lost.

    Notes
    -----
    Backward over ticks: of each offer whose sites have the state, whether it is held, the best of
    going on, waiting, and any move that can be completed before a site of the new offer goes. So
    moves take whole stretches of ticks, as in the engines. An upper bound for every policy: only
    failures and work lost at short notice are left out.
    """
    return CourseValues.of(world).most


@dataclass(frozen=True, kw_only=True, eq=False)
class CourseValues:
    """Most tokens that can still be trained at every tick of a course that is known.

    Attributes
    ----------
    held_tokens
        Where an offer is held whose sites have the state, (T + 1, C).
    waiting_tokens
        Where nothing is held, by the offer whose sites have the state, the last for none,
        (T + 1, C + 1).
    ticks_up
        Ticks for which an offer stays up, (T + 1, C).
    kept_tokens_per_s
        Of each offer, checkpoints counted, (C,).
    """

    tick_s: float
    held_tokens: Table
    waiting_tokens: Table
    ticks_up: Whole
    kept_tokens_per_s: Table

    @classmethod
    def of(cls, world: SpotWorld) -> "CourseValues":
        """Work the values out."""
        offers, course = world.offers, world.course
        up = np.asarray((~offers.needs | course.up[:, np.newaxis]).all(axis=2))
        shape = course.num_ticks + 1, len(offers.needs)
        found = cls(
            tick_s=course.tick_s,
            held_tokens=np.zeros(shape),
            waiting_tokens=np.zeros((shape[0], shape[1] + 1)),
            ticks_up=np.zeros(shape, np.int64),
            kept_tokens_per_s=offers.kept_tokens_per_s,
        )
        tables = found.held_tokens, found.waiting_tokens, found.ticks_up
        _fill(
            up, found.kept_tokens_per_s, (offers.checkpoint_s, offers.move_s), course.tick_s, tables
        )
        return found

    @property
    def most(self) -> float:
        """Tokens of the whole course."""
        return float(self.waiting_tokens[0, -1])

    def left(self, view: SpotView, job: int = 0) -> float:
        """Tokens that a job can still train from what is seen of it, and from the course."""
        tick = round(float(view.time_s[job]) / self.tick_s)
        held, home, debt_s = int(view.held[job]), int(view.home[job]), float(view.debt_s[job])
        if held == NOTHING:
            return float(self.waiting_tokens[tick, home])
        if debt_s == 0.0:
            return float(self.held_tokens[tick, held])
        left, needed = float(self.waiting_tokens[tick, home]), math.ceil(debt_s / self.tick_s)
        if needed <= self.ticks_up[tick, held]:
            gain = (needed * self.tick_s - debt_s) * self.kept_tokens_per_s[held]
            left = max(left, float(gain + self.held_tokens[tick + needed, held]))
        return left


@kernel
def _fill(
    up: np.ndarray,
    rates: np.ndarray,
    times_s: tuple[np.ndarray, np.ndarray],
    tick_s: float,
    tables: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Fill the tables of `CourseValues`, from the last tick on; times of checkpoints and moves."""
    (checkpoint_s, move_s), (runs, waits, lasts) = times_s, tables
    num_ticks, num_offers = up.shape
    for tick in range(num_ticks - 1, -1, -1):
        for offer in range(num_offers):
            lasts[tick, offer] = lasts[tick + 1, offer] + 1 if up[tick, offer] else 0
        for home in range(num_offers + 1):
            moved = _best_move(rates, move_s[home], lasts[tick], runs[tick:], tick_s)
            waits[tick, home] = max(waits[tick + 1, home], moved)
        for home in range(num_offers):
            if up[tick, home]:
                paid_s = move_s[home] + checkpoint_s[home]
                moved = _best_move(rates, paid_s, lasts[tick], runs[tick:], tick_s)
                stays = tick_s * rates[home] + runs[tick + 1, home]
                runs[tick, home] = max(stays, moved, waits[tick + 1, home])
            else:
                runs[tick, home] = waits[tick, home]


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
