"""World of a training job on sites that come and go, what a policy sees of it, what it leaves."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from des.base.checks import require_count, require_non_negative
from des.dynamics.site_course import Flags, SiteCourse
from des.dynamics.site_law import NOTICE_S
from des.spot.offers import Offers, Table

Whole = npt.NDArray[np.int64]

NOTHING = -1
"""Offer of a job that holds no site."""
WINDOWS_S = (3 * 3600.0, 12 * 3600.0, 48 * 3600.0)
"""Time constants of the uptimes that are seen. [s]"""
LOSSES_S = 86400.0
"""Time constant of the number of losses. [s]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class SpotWorld:
    """A job and the sites that it may hold.

    Attributes
    ----------
    notice_s
        Time from the notice to the loss of a site: a checkpoint that takes no longer is written.
    ticks_per_decision
        Decisions fall on its multiples, and on every tick at which nothing is held.
    sees_all
        Whether the policy sees all sites at every tick; else those that it holds or has tried.
    """

    course: SiteCourse
    offers: Offers
    notice_s: float = NOTICE_S["aws"]
    ticks_per_decision: int = 4
    sees_all: bool = True

    def __post_init__(self) -> None:
        require_non_negative("spot world", "notice_s", self.notice_s)
        require_count("spot world", "ticks_per_decision", self.ticks_per_decision)
        if self.offers.num_sites != len(self.course.sites):
            raise ValueError(
                f"spot world: offers must be over the {len(self.course.sites)} sites of the "
                f"course, got {self.offers.num_sites}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class SpotView:
    """View of N worlds at a decision; S sites each.

    Attributes
    ----------
    time_s
        Since the begin, (N,). [s]
    held, home
        Offer that is held, and offer whose sites have the state (`NOTHING`: none yet), (N,).
    debt_s
        Time of the move or restart under way that is still to come, (N,). [s]
    unsaved_s
        Work since the last checkpoint, (N,). [s]
    up
        Whether a site was up when it was last seen, (N, S).
    age_s, seen_s
        Time since its stay up or down was first seen, and since it was last seen, (N, S); the
        latter is ``inf`` for a site never seen. [s]
    uptimes
        Share of the time up, with exponential weights of `WINDOWS_S`, (N, S, 3).
    losses
        Times that a site was seen to go, with exponential weights of `LOSSES_S`, (N, S).
    """

    time_s: Table
    held: Whole
    home: Whole
    debt_s: Table
    unsaved_s: Table
    up: Flags
    age_s: Table
    seen_s: Table
    uptimes: Table
    losses: Table


class SpotPolicy(Protocol):
    """Decides on what to hold in N worlds with the same tables of offers."""

    def choose(self, view: SpotView) -> Whole:
        """Return the offer to hold next, (N,); the one that is held, or `NOTHING`, changes nothing.

        An offer one of whose sites is down is refused: what is held stays.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotHistory:
    """Result of a run.

    Attributes
    ----------
    tokens
        Trained and not lost.
    duration_s, held_s, worked_s, lost_s
        Of the run; with sites held; at work, without checkpoints, moves and restarts; of that work,
        what was lost. [s]
    usd
        Price of what was held.
    num_moves, num_losses, num_failures, num_refused
        Changes of the offer held, losses of one, failures of servers, refused requests.
    """

    tokens: float
    duration_s: float
    held_s: float
    worked_s: float
    lost_s: float
    usd: float
    num_moves: int
    num_losses: int
    num_failures: int
    num_refused: int

    @property
    def effective_time_ratio(self) -> float:
        """Share of the time that was work and not lost (effective training time ratio)."""
        return (self.worked_s - self.lost_s) / self.duration_s


def decays_of(num_ticks: int, tick_s: float) -> Table:
    """Weight that is left of the past after a number of ticks, (4, T + 1).

    By `WINDOWS_S`, then by `LOSSES_S`.
    """
    constants_s = np.array([*WINDOWS_S, LOSSES_S])
    decays: Table = np.exp(-np.arange(num_ticks + 1) * tick_s / constants_s[:, np.newaxis])
    return decays
