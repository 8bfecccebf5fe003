"""Settings of a training run: its length, its epochs, and what a planner sees of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from des.base.checks import require_count, require_non_negative, require_positive
from des.dynamics import STEADY
from des.plan.plan import Plan
from des.plan.replacement import RESTART_S
from des.training.background import BackgroundLoad, LoadSample
from des.training.replayed_load import ReplayedLoad
from des.world.domain_load import DomainLoad
from des.world.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """Length and surroundings of a training run.

    Parameters
    ----------
    num_iterations, num_epochs
        End of the run: after ``num_iterations``, or with the first iteration that ends at or after
        ``num_epochs * epoch_s``. Exactly one of the two is given.
    epoch_s
        Epoch ``e`` starts at ``e * epoch_s``, or at the end of the iteration or migration under way
        then. Borders that fall into the same one come together, as the last of them; after a change
        of plan at least one iteration is done.
    seed
        Of the moving links and of the jobs. Links that move in time follow one draw throughout,
        others are drawn again for each epoch.
    background
        Other jobs, see `des.training.background.Background`.
    restart_s, pays_bytes
        Price of a change of plan, see `des.simulation.migration.migration_s`. The first plan is
        free.
    """

    num_iterations: int | None = None
    num_epochs: int | None = None
    epoch_s: float = math.inf
    seed: int = 0
    background: tuple[BackgroundLoad | ReplayedLoad | None, ...] = ()
    restart_s: float = RESTART_S
    pays_bytes: bool = True

    def __post_init__(self) -> None:
        owner = "training run"
        if (self.num_iterations is None) == (self.num_epochs is None):
            raise ValueError(
                f"{owner}: one of num_iterations and num_epochs must be given, "
                f"got {self.num_iterations!r} and {self.num_epochs!r}"
            )
        if self.num_iterations is not None:
            require_count(owner, "num_iterations", self.num_iterations)
        if self.num_epochs is not None:
            require_count(owner, "num_epochs", self.num_epochs)
        if self.num_epochs is not None or self.epoch_s != math.inf:
            require_positive(owner, "epoch_s", self.epoch_s)
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(
                f"{owner}: seed must be a whole number of at least 0, got {self.seed!r}"
            )
        require_non_negative(owner, "restart_s", self.restart_s)

    def epoch_at(self, time_s: float) -> int:
        """Epoch that a time belongs to; a border belongs to the epoch it opens."""
        if self.epoch_s == math.inf:
            return 0
        epoch = math.floor(time_s / self.epoch_s)
        if (epoch + 1) * self.epoch_s <= time_s:  # the division was rounded down
            return epoch + 1
        return epoch - 1 if epoch * self.epoch_s > time_s else epoch


@dataclass(frozen=True, kw_only=True)
class EpochView:
    """View of the world when an epoch starts.

    Parameters
    ----------
    topology
        The links as they stand, without those that are down and without the law of their course;
        the domains as if there were no other jobs, see `des.training.background.beside_jobs`.
    loads
        Loads of all domains now.
    load_changes
        Changes of the loads since the last decision, in order of time.
    plan
        Plan in force; None before the first one.
    num_iterations
        Iterations done; 0 in a forecast.
    """

    epoch: int
    time_s: float
    topology: Topology
    loads: tuple[DomainLoad, ...]
    load_changes: tuple[LoadSample, ...]
    plan: Plan | None
    num_iterations: int = 0


Planner = Callable[[EpochView], Plan]
"""Decides on the plan of an epoch; to return the one it is shown costs nothing."""


def observed(topology: Topology) -> Topology:
    """Return the world with its links as they stand at time 0, without those that are down."""
    bandwidths, latencies = topology.factors_at_start()
    up = [index for index, factor in enumerate(bandwidths) if factor > 0]
    routing_latencies_s = topology.routing_latencies_s
    standing = replace(
        topology,
        links=tuple(topology.links[index] for index in up),
        dynamics=STEADY,
        movement=None,
        routing_latencies_s=(
            None if routing_latencies_s is None else tuple(routing_latencies_s[i] for i in up)
        ),
    )
    return standing.scaled(bandwidths[up], latencies[up])
