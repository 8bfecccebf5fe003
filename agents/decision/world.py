"""World of a scheduler, with a decision in every epoch."""

import math
from typing import Protocol

from des import Topology, Workload
from des.plan.replacement import Replacement


class DecisionWorld(Protocol):
    """A job on a network that moves, for a number of epochs; the worlds of the suites are such.

    ``topology`` has domains and links at their base figures. ``schedule`` is for methods that
    choose none. Every epoch is ``epoch_s`` long by the clock, and has as many iterations as the
    plan in force does in what a change of plan, which costs ``replacement``, leaves of it. The work
    that counts as that of an epoch is ``iterations_per_epoch``.
    """

    @property
    def name(self) -> str:
        """Name in tables."""

    @property
    def topology(self) -> Topology:
        """Domains and links at base figures."""

    @property
    def workload(self) -> Workload:
        """The job."""

    @property
    def schedule(self) -> str:
        """Pipeline schedule of methods that choose none."""

    @property
    def epoch_s(self) -> float:
        """Length of an epoch by the clock. [s]"""

    @property
    def num_epochs(self) -> int:
        """Decisions of one draw."""

    @property
    def iterations_per_epoch(self) -> int:
        """Iterations that count as the work of an epoch, see `equal_work_s`."""

    @property
    def replacement(self) -> Replacement:
        """Cost of a change of plan."""

    def epoch_topology(self, draw_seed: int, epoch: int) -> Topology:
        """World as an epoch of a draw finds it; the same for all methods."""


def equal_work_s(clock_s: float, num_iterations: float, done: float) -> float:
    """Time of some iterations at the pace at which ``done`` were done in ``clock_s``. [s]

    So plans that see the same networks for the same time are compared by the time of equal work.
    It is ``inf`` where nothing was done.

    Examples
    --------
    >>> equal_work_s(1200.0, 100, 80.0), equal_work_s(1200.0, 100, 0.0)
    (1500.0, inf)
    """
    return clock_s * num_iterations / done if done > 0.0 else math.inf


def bytes_per_token(num_bytes: float, num_tokens: float) -> float:
    """Bytes sent for each trained token, ``inf`` where nothing was done. [bytes]"""
    return num_bytes / num_tokens if num_tokens > 0.0 else math.inf
