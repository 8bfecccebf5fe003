"""A job on a network whose links and loads move by a law, drawn by seed, epoch after epoch."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from agents.decision.load import LoadLaw, loaded
from des import STEADY, Law, Topology, Workload
from des.base.checks import MOST_ITEMS, require_count, require_positive, require_seed
from des.base.random_numbers import derive_seed
from des.dynamics.law import Path
from des.dynamics.movement import require_moving
from des.plan.replacement import Replacement
from des.schedules import DEFAULT_SCHEDULE, schedule_named

_LINKS, _LOAD = 0, 1


@dataclass(frozen=True, kw_only=True)
class JobWorld:
    """A `agents.decision.world.DecisionWorld` of a given network, job and law of its links.

    Attributes
    ----------
    topology
        Domains and links at base figures; ``dynamics`` is the law by which the links move.
    load
        Speed of the domains, epoch by epoch.
    epoch_s
        Length of an epoch by the clock: a plan does in it what it has time for. [s]
    iterations_per_epoch
        As many as count as the work of an epoch.
    replacement
        Cost of a change of plan.
    """

    topology: Topology
    workload: Workload
    load: LoadLaw = field(default_factory=LoadLaw)
    schedule: str = DEFAULT_SCHEDULE
    epoch_s: float
    num_epochs: int = 64
    iterations_per_epoch: int
    replacement: Replacement = field(default_factory=Replacement)
    name: str = "job"

    def __post_init__(self) -> None:
        owner = f"world {self.name}"
        require_positive(owner, "epoch_s", self.epoch_s)
        require_count(owner, "num_epochs", self.num_epochs, MOST_ITEMS)
        require_count(owner, "iterations_per_epoch", self.iterations_per_epoch, MOST_ITEMS)
        schedule_named(self.schedule)
        if self.topology.movement is not None:
            raise ValueError(
                f"{owner}: topology must not be moving already, as each epoch has its own part of "
                f"the movement; got {self.topology.movement!r}"
            )
        if self.topology.dynamics != STEADY:
            require_moving(owner, self.topology.dynamics)
            _require_links_up(owner, self.topology)
        self.load.check_world(self.topology)

    def epoch_topology(self, draw_seed: int, epoch: int) -> Topology:
        """Return the world at the start of an epoch of a draw; the links then stand still.

        A function of (world, draw seed, epoch): epochs of a draw are parts of one course.

        Raises
        ------
        ValueError
            If a number is out of range.
        """
        owner = f"world {self.name}"
        require_seed(owner, "draw_seed", draw_seed)
        if isinstance(epoch, bool) or epoch not in range(self.num_epochs):
            raise ValueError(
                f"{owner}: epoch must be a whole number from 0 to {self.num_epochs - 1}, "
                f"got {epoch!r}"
            )
        load_seed = int(derive_seed(draw_seed, _LOAD, 0))
        world = loaded(
            self.topology, self.load.factors(self.topology.num_domains, load_seed, epoch)
        )
        if world.dynamics == STEADY:
            return world
        path, start_s = self._path_of(draw_seed), epoch * self.epoch_s
        pieces = [path.piece_at(link, start_s) for link in range(len(world.links))]
        return replace(
            world.scaled(
                np.array([piece.bandwidth_factor for piece in pieces]),
                np.array([piece.latency_factor for piece in pieces]),
            ),
            movement=None,
        )

    def __getstate__(self) -> dict[str, object]:
        """The fields; a course is drawn again by who has a copy."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _last_path(self) -> list[tuple[int, Path]]:
        """The course drawn last, which the epochs of a draw share."""
        return []

    def _path_of(self, draw_seed: int) -> Path:
        known = self._last_path
        if not known or known[0][0] != draw_seed:
            law: Law = self.topology.dynamics
            path = law.path(self.topology.links, int(derive_seed(draw_seed, _LINKS, 0)))
            known[:] = [(draw_seed, path)]
        return known[0][1]


def _require_links_up(owner: str, topology: Topology) -> None:
    """Refuse a law under which an epoch may begin with a link that has no bandwidth."""
    for link in topology.links:
        if not topology.dynamics.extremes(link).least_bandwidth_factor > 0.0:
            raise ValueError(
                f"{owner}: the law must leave each link some bandwidth, as epochs are judged on "
                f"links that stand still; got one that takes {link.source} -> {link.target} down"
            )
