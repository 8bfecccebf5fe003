"""One world of a suite: a job, a network that moves, load, and what a move costs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from des import STEADY, Movement, Topology, UniformLaw, Workload
from des.base.checks import MOST_ITEMS, require_count, require_positive, require_seed
from des.base.lazy import lazy_imports
from des.dynamics.movement import require_moving
from des.plan.replacement import Replacement
from des.schedules import schedule_named
from des.world.transfer_ratio import transfer_compute_ratio_of

with lazy_imports(__name__):
    from agents.decision import load as domain_loads
    from des.base import random_numbers


Purpose = Literal["train", "eval"]
"""Purpose of a world. Whatever the seeds, no world for one is ever drawn for the other."""

LEAST_ITERATIONS = 10
"""Least number of iterations that count as the work of an epoch."""

_LINKS, _LOAD = 0, 1


@dataclass(frozen=True, kw_only=True)
class SuiteWorld:
    """A job on a network, with a number of epochs, each with a decision.

    Attributes
    ----------
    name
        Suite, seed and index in one word.
    topology
        Domains and links at their base figures; ``dynamics`` is the law by which the links move.
        They stand still, or move in time rather than once an epoch.
    law
        Name of that law among `scenarios.suites.laws.LAWS`.
    load
        Speed of the domains, epoch by epoch.
    schedule
        Pipeline schedule of methods that do not choose one; at least one even split fits with it.
    epoch_s
        Length of an epoch by the clock: a plan does in it what it has time for. [s]
    iterations_per_epoch
        As many as count as the work of an epoch, at least 10; the epoch over `nominal_iteration_s`
        of the best even split that fits, rounded down.
    replacement
        Cost of a move: bytes and restart, or the restart only.
    target_ratio
        Requested transfer/compute ratio; `ratio` is the one that the world has.
    """

    name: str
    suite: str
    seed: int
    index: int
    topology: Topology
    workload: Workload
    law: str
    load: domain_loads.LoadLaw
    schedule: str
    epoch_s: float
    num_epochs: int
    iterations_per_epoch: int
    replacement: Replacement
    target_ratio: float

    def __post_init__(self) -> None:
        owner = f"world {self.name}"
        require_seed(owner, "seed", self.seed)
        require_positive(owner, "epoch_s", self.epoch_s)
        require_count(owner, "num_epochs", self.num_epochs, MOST_ITEMS)
        require_count(owner, "iterations_per_epoch", self.iterations_per_epoch, MOST_ITEMS)
        require_positive(owner, "target_ratio", self.target_ratio)
        if self.iterations_per_epoch < LEAST_ITERATIONS:
            raise ValueError(
                f"{owner}: iterations_per_epoch must be at least {LEAST_ITERATIONS}, "
                f"got {self.iterations_per_epoch}"
            )
        schedule_named(self.schedule)
        if self.topology.movement is not None:
            raise ValueError(
                f"{owner}: topology must not be moving already, as each epoch has its own part of "
                f"the movement; got {self.topology.movement!r}"
            )
        if self.topology.dynamics != STEADY:
            require_moving(owner, self.topology.dynamics)
        self.load.check_world(self.topology)

    @property
    def num_domains(self) -> int:
        """Number of domains, K."""
        return self.topology.num_domains

    @cached_property
    def ratio(self) -> float:
        """Transfer/compute ratio R at base figures, without load."""
        return transfer_compute_ratio_of(self.workload, self.topology)

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits, the same in every process: `world_digest` of this one."""
        return world_digest(self.topology, self.workload)

    @property
    def has_still_epochs(self) -> bool:
        """Whether the links stand still within every epoch."""
        law = self.topology.dynamics
        if not isinstance(law, UniformLaw):
            return False
        return law.update_interval_s is None or law.update_interval_s % self.epoch_s == 0

    def epoch_topology(self, draw_seed: int, epoch: int) -> Topology:
        """Return the world as an epoch of a draw finds it: links and load as they are then.

        Links that stand still within an epoch (`has_still_epochs`) come back with their figures.
        Others come back moving, from the start of the epoch on: ``at_start()`` of it is what an
        observer sees, and holds it for the epoch.

        Parameters
        ----------
        draw_seed
            Seed of the course of links and load, within [0, 2**63). All methods are judged on the
            same; worlds of the same links and job see the same one.
        epoch
            From 0 to ``num_epochs - 1``.

        Raises
        ------
        ValueError
            If a number is out of range.

        Notes
        -----
        A function of (world, draw seed, epoch): nothing depends on earlier calls. Epochs
        of a draw are parts of one course, so what holds longer than an epoch holds on.
        """
        require_seed(f"world {self.name}", "draw_seed", draw_seed)
        if isinstance(epoch, bool) or epoch not in range(self.num_epochs):
            raise ValueError(
                f"world {self.name}: epoch must be a whole number from 0 to "
                f"{self.num_epochs - 1}, got {epoch!r}"
            )
        factors = self.load.factors(self.num_domains, self._seed_of(draw_seed, _LOAD), epoch)
        world = domain_loads.loaded(self.topology, factors)
        if world.dynamics == STEADY:
            return world
        movement = Movement(
            law=world.dynamics,
            seed=self._seed_of(draw_seed, _LINKS),
            start_s=epoch * self.epoch_s,
        )
        moving = replace(world, movement=movement)
        return moving.at_start() if self.has_still_epochs else moving

    def _seed_of(self, draw_seed: int, part: int) -> int:
        """Seed of the links or of the load in a draw; each world has seeds of its own."""
        world_key = int(self.digest[:15], 16)  # 60 bits, as keys are below 2**63
        return int(random_numbers.derive_seed(draw_seed, world_key, part))


def world_digest(topology: Topology, workload: Workload) -> str:
    """Digest of what a world is made of: domains, links and job, each number to the last bit.

    Law, load, epochs and prices do not count: a world that differs by those alone is the same
    world to train on.
    """
    domains = [
        [
            domain.num_gpus,
            domain.gpu_peak_flops_per_s,
            domain.gpu_memory_bytes,
            domain.attainable_fraction,
        ]
        for domain in topology.domains
    ]
    links = [
        [
            topology.index_of[link.source],
            topology.index_of[link.target],
            link.bandwidth_bytes_per_s,
            link.latency_s,
        ]
        for link in topology.links
    ]
    job = [workload.name, workload.num_layers, workload.num_microbatches, workload.message_bytes]
    return hashlib.sha256(json.dumps([domains, links, job]).encode()).hexdigest()


def draw_purpose(topology: Topology, workload: Workload) -> Purpose:
    """Return what a world may be drawn for: half of all there could be are for either."""
    return "eval" if int(world_digest(topology, workload)[-1], 16) % 2 else "train"
