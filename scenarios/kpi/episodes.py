"""An episode: a scheduler decides epoch after epoch, and is charged for what it decides."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.epochs import Decision, DecisionWorld, Scheduler
from agents.epochs.course import situation_of
from agents.epochs.tables import held_topology
from agents.simulator import Simulator
from des import NO_CORRECTIONS, Corrections, Plan, Topology, migration_s, moved_bytes
from des.compiled.simulate import simulate_compiled

Clock = Callable[[], float]
"""Wall time. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """What one decision came to.

    Attributes
    ----------
    iteration_s, cost_bytes, utilisation
        Of one iteration on the links as they were when the epoch began, and held. ``cost_bytes``
        are bytes times hops over links between domains.
    change_s, moved_bytes
        What the change of plan took and sent; 0 where there was none and before the first epoch.
    decision_s
        Wall time of the decision; a timing, which no other figure depends on. [s]
    """

    decision: Decision
    iteration_s: float
    cost_bytes: float
    utilisation: float
    fits_memory: bool
    change_s: float
    moved_bytes: float
    decision_s: float


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One draw of a world under one scheduler."""

    iterations_per_epoch: int
    tokens_per_iteration: int
    epochs: tuple[EpochRecord, ...]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plan of each epoch."""
        return tuple(epoch.decision.plan for epoch in self.epochs)

    @cached_property
    def total_s(self) -> float:
        """Time of all iterations and changes of plan. [s]"""
        return sum(
            self.iterations_per_epoch * epoch.iteration_s + epoch.change_s for epoch in self.epochs
        )

    @property
    def num_tokens(self) -> int:
        """Tokens trained."""
        return len(self.epochs) * self.iterations_per_epoch * self.tokens_per_iteration

    @cached_property
    def cost_bytes_per_token(self) -> float:
        """Bytes over links between domains, moves included, for each token. [bytes]"""
        num_bytes = sum(
            self.iterations_per_epoch * epoch.cost_bytes + epoch.moved_bytes
            for epoch in self.epochs
        )
        return num_bytes / self.num_tokens

    @cached_property
    def utilisation(self) -> float:
        """Useful FLOPs over the peak of all domains' GPUs times the time that all took."""
        useful = sum(
            self.iterations_per_epoch * epoch.iteration_s * epoch.utilisation
            for epoch in self.epochs
        )
        return useful / self.total_s

    @property
    def num_fallbacks(self) -> int:
        """Decisions in which the scheduler's own plan was not valid."""
        return sum(epoch.decision.is_fallback for epoch in self.epochs)


def run_episode(
    world: DecisionWorld,
    draw_seed: int,
    scheduler: Scheduler,
    *,
    num_epochs: int | None = None,
    simulator: Simulator = simulate_compiled,
    clock: Clock = time.perf_counter,
) -> Episode:
    """Let a scheduler decide every epoch of a draw.

    Parameters
    ----------
    num_epochs
        The first ones only; None: all.
    simulator
        Judges the plans, whatever the scheduler believes of them.

    Notes
    -----
    Links stand still within an epoch as they are at its start. The first plan is free; a change
    takes ``migration_s`` on the links as they are then.
    """
    scheduler.begin()
    last: Plan | None = None
    epochs = []
    for epoch in range(world.num_epochs if num_epochs is None else num_epochs):
        topology = held_topology(world, draw_seed, epoch)
        situation = situation_of(world, topology, epoch, last)
        begin_s = clock()
        decision = scheduler.decide(situation)
        took_s = clock() - begin_s
        result = simulator(topology, world.workload, decision.plan, NO_CORRECTIONS)
        change_s, sent_bytes = change_of(world, topology, last, decision.plan)
        epochs.append(
            EpochRecord(
                decision=decision,
                iteration_s=result.makespan_s,
                cost_bytes=result.communication_cost_bytes,
                utilisation=result.utilisation,
                fits_memory=result.fits_memory,
                change_s=change_s,
                moved_bytes=sent_bytes,
                decision_s=took_s,
            )
        )
        last = decision.plan
    return Episode(
        iterations_per_epoch=world.iterations_per_epoch,
        tokens_per_iteration=world.workload.tokens_per_iteration,
        epochs=tuple(epochs),
    )


def change_of(
    world: DecisionWorld, topology: Topology, last: Plan | None, plan: Plan
) -> tuple[float, float]:
    """Time [s] of a change of plan, and the bytes that it moves; nothing before the first plan."""
    if last is None or plan == last:
        return 0.0, 0.0
    costs = world.replacement
    took_s = migration_s(
        topology,
        world.workload,
        last,
        plan,
        restart_s=costs.restart_s,
        pays_bytes=costs.pays_bytes,
    )
    sent = moved_bytes(world.workload, last, plan) if costs.pays_bytes else {}
    return took_s, sum(sent.values())


def iteration_times_s(
    world: DecisionWorld,
    draw_seed: int,
    plan: Plan,
    *,
    num_epochs: int | None = None,
    corrections: Corrections = NO_CORRECTIONS,
) -> np.ndarray:
    """Iteration time of one plan in every epoch of a draw, shaped (epochs,). [s]"""
    epochs = range(world.num_epochs if num_epochs is None else num_epochs)
    return np.array(
        [
            simulate_compiled(
                held_topology(world, draw_seed, epoch), world.workload, plan, corrections
            ).makespan_s
            for epoch in epochs
        ]
    )
