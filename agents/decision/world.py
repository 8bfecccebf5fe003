"""World of a scheduler, with a decision in every epoch."""

from typing import Protocol

from des import Topology, Workload
from des.plan.replacement import Replacement


class DecisionWorld(Protocol):
    """A job on a network that moves, for a number of epochs; the worlds of the suites are such.

    ``topology`` has domains and links at their base figures. ``schedule`` is for methods that
    choose none. Every epoch is ``epoch_s`` long by the clock of the network, and does
    ``iterations_per_epoch`` iterations, however long these take. ``replacement`` is what a change
    of plan costs.
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
        """Nominal length of an epoch. [s]"""

    @property
    def num_epochs(self) -> int:
        """Decisions of one draw."""

    @property
    def iterations_per_epoch(self) -> int:
        """Iterations between two decisions."""

    @property
    def replacement(self) -> Replacement:
        """Cost of a change of plan."""

    def epoch_topology(self, draw_seed: int, epoch: int) -> Topology:
        """World as an epoch of a draw finds it; the same for all methods."""
