"""An episode in numbers: what each of some plans takes in each epoch, and each change of plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agents.decision.frozen_network import distinct_networks, freeze_topologies
from agents.decision.levels import LEVELS
from agents.decision.world import DecisionWorld, bytes_per_token, equal_work_s
from agents.judge.steady_judge import SteadyJudge
from agents.replanning.known_times import KnownTimes
from agents.replanning.levels import Levels, PlanLevels
from agents.replanning.path_costs import PathCosts
from agents.replanning.payoff import undone_by_move
from agents.replanning.plan_availability import as_known_from, join_known_from
from agents.replanning.plan_costs import Changes, cost_bytes_of
from des import (
    NO_CORRECTIONS,
    Corrections,
    Plan,
    Topology,
)
from des.compiled.many.layout import Real, Whole


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeTables:
    """Times of C plans in E epochs of one draw, each on its network as held through the epoch.

    Attributes
    ----------
    iteration_s
        Of each plan in each epoch, (E, C); ``inf`` where it does not fit or cannot send. [s]
    move_s
        To change at the start of an epoch from a plan to another, (E, C, C); 0 on the diagonal,
        ``inf`` where a layer has to go where no links lead. [s]
    moved_bytes
        Model state that a change sends, from row to column, (C, C). [bytes]
    cost_bytes
        Bytes of an iteration over all WAN links, (C,); ``nan`` where it cannot send. [bytes]
    level
        Level of a change, from row to column, (C, C), by position in `LEVELS`.
    base_iteration_s
        At base figures, (C,). [s]
    epoch_s
        Length of an epoch by the clock. [s]
    iterations_per_epoch
        As many as count as an epoch's work in `total_s`.
    peak_flops_per_s
        Of all GPUs of all domains.
    known_from
        Epoch from which on each plan is known, (C,): a rule without foresight cannot take it
        before. Plans that are known in no epoch have ``num_epochs`` or more. None: all are known
        from the first epoch on, 0.
    """

    plans: tuple[Plan, ...]
    iteration_s: Real
    move_s: Real
    moved_bytes: Real
    cost_bytes: Real
    level: Levels
    base_iteration_s: Real
    epoch_s: float
    iterations_per_epoch: int
    flops_per_iteration: float
    tokens_per_iteration: int
    peak_flops_per_s: float
    known_from: Whole | None = None

    def __post_init__(self) -> None:
        num_epochs, num_plans = self.iteration_s.shape
        shapes = {
            "plans": ((len(self.plans),), (num_plans,)),
            "move_s": (self.move_s.shape, (num_epochs, num_plans, num_plans)),
            "moved_bytes": (self.moved_bytes.shape, (num_plans, num_plans)),
            "cost_bytes": (self.cost_bytes.shape, (num_plans,)),
            "level": (self.level.shape, (num_plans, num_plans)),
            "base_iteration_s": (self.base_iteration_s.shape, (num_plans,)),
        }
        for name, (shape, expected) in shapes.items():
            if shape != expected:
                raise ValueError(f"tables: {name} must be shaped {expected}, got {shape}")
        if self.known_from is not None:
            as_known_from(self.known_from, num_plans)

    @property
    def num_epochs(self) -> int:
        """Number of epochs, E."""
        return len(self.iteration_s)

    @property
    def num_plans(self) -> int:
        """Number of plans, C."""
        return len(self.plans)

    @cached_property
    def is_known(self) -> npt.NDArray[np.bool_]:
        """Whether each plan is known in each epoch, (E, C)."""
        known_from = np.zeros(self.num_plans) if self.known_from is None else self.known_from
        known: npt.NDArray[np.bool_] = np.arange(self.num_epochs)[:, np.newaxis] >= known_from
        return known

    @cached_property
    def static(self) -> int:
        """The first of the plans that are quickest at base figures and known from the first on."""
        return int(np.where(self.is_known[0], self.base_iteration_s, np.inf).argmin())

    @cached_property
    def undone(self) -> Real:
        """Minus the iterations of an epoch, (E, C); ``inf`` where a plan does not work.

        The costs of a path are those of its epochs, and of its moves, `undone_by_move`; the least
        is the best.
        """
        return np.where(np.isfinite(self.iteration_s), -self.epoch_s / self.iteration_s, np.inf)

    @cached_property
    def undone_by_move(self) -> Real:
        """Iterations that a change leaves undone, (E, C, C); ``inf`` where it cannot be.

        A change that takes longer than its epoch leaves them at that epoch's pace.
        """
        return undone_by_move(self.move_s, self.iteration_s)


def tables_of(
    world: DecisionWorld,
    draw_seed: int,
    plans: Sequence[Plan],
    *,
    corrections: Corrections = NO_CORRECTIONS,
    times: KnownTimes | None = None,
    networks: Sequence[Topology] | None = None,
    known_from: npt.ArrayLike | None = None,
) -> EpisodeTables:
    """Judge plans in all epochs of a draw, and all changes between them.

    Iteration times are those of `des.simulate` on the network at the start of the epoch
    (`freeze_topology`), to the last bit, and of copies that seldom exchange the mean of their
    steps; changes take what `des.migration_s` says there, but for rounding. Plans that ask for more
    memory than there is take for ever.

    Parameters
    ----------
    times
        Those of this world under these corrections, to look up what was judged before.
    networks
        Those of `freeze_topologies` where they are at hand, to save their drawing.
    known_from
        Epoch from which on each plan is known, (C,), see `EpisodeTables`.

    Raises
    ------
    ValueError
        If plans are none or not all different, none that is known from the first epoch on works at
        base figures, one does not match the world, or ``known_from`` is out of range.
    """
    plans = tuple(plans)
    if not plans or len(set(plans)) < len(plans):
        raise ValueError(
            f"tables: plans must be one or more, each once, got {len(plans)}, of which "
            f"{len(set(plans))} are different"
        )
    for plan in plans:
        plan.check_against(world.topology, world.workload)
    if times is None:
        num_domains = world.topology.num_domains
        times = KnownTimes(SteadyJudge(world.workload, num_domains, corrections=corrections))
    base_s = times.on_all("base", [world.topology], plans)[0]
    since = None if known_from is None else as_known_from(known_from, len(plans))
    if not np.isfinite(base_s if since is None else base_s[since == 0]).any():
        raise ValueError(
            f"tables: plans must hold one that works on world {world.name} and is known from the "
            "first epoch on, got none"
        )
    changes = Changes(world.workload, plans, world.topology.num_domains, world.replacement)
    if networks is None:
        networks = freeze_topologies(world, draw_seed)
    distinct, epochs = distinct_networks(networks)
    move_s = np.array([changes.times_s(topology, corrections) for topology in distinct])
    return EpisodeTables(
        plans=plans,
        iteration_s=times.on_all(draw_seed, distinct, plans)[epochs],
        move_s=move_s[epochs],
        moved_bytes=changes.moved_bytes,
        cost_bytes=np.array([cost_bytes_of(world, plan) for plan in plans]),
        level=levels_of(plans),
        base_iteration_s=base_s,
        epoch_s=world.epoch_s,
        iterations_per_epoch=world.iterations_per_epoch,
        flops_per_iteration=world.workload.flops_per_iteration,
        tokens_per_iteration=world.workload.tokens_per_iteration,
        peak_flops_per_s=world.topology.peak_flops_per_s,
        known_from=since,
    )


def levels_of(plans: Sequence[Plan]) -> Levels:
    """Level of each change between different plans, from row to column, (C, C), see `level_of`."""
    every = np.arange(len(plans))
    return PlanLevels(plans).between(every, every)


def join_tables(parts: Sequence[EpisodeTables]) -> EpisodeTables:
    """Return tables of the epochs of several draws of one world, for the same plans.

    They follow on one another as one long episode, so a plan is known as soon as the first draw
    that yields it does.

    Raises
    ------
    ValueError
        If there are none, or their plans differ.
    """
    if not parts or any(part.plans != parts[0].plans for part in parts):
        raise ValueError(f"tables: parts must be of the same plans, got {len(parts)} parts")
    return replace(
        parts[0],
        iteration_s=np.concatenate([part.iteration_s for part in parts]),
        move_s=np.concatenate([part.move_s for part in parts]),
        known_from=join_known_from(
            [part.known_from for part in parts],
            [part.num_epochs for part in parts],
            parts[0].num_plans,
        ),
    )


def foreseen(tables: EpisodeTables) -> EpisodeTables:
    """Return the same episode for who knows all of its plans from the first epoch on."""
    return replace(tables, known_from=None)


def total_s(tables: EpisodeTables, path: npt.ArrayLike) -> float:
    """Time of the work of an episode under plans by number, one an epoch, (E,). [s]

    Epochs pass by the clock: the time is that of ``iterations_per_epoch`` of each at the mean pace
    of the episode, ``inf`` where changes leave time for nothing. The first plan is free.

    Raises
    ------
    ValueError
        If the path has another length, or names plans that there are not.
    """
    steps = check_path(tables, path)
    return _total_s(tables, _done(tables, steps))


def costs_of(tables: EpisodeTables, path: npt.ArrayLike) -> PathCosts:
    """Add up the totals of an episode; arguments and errors as those of `total_s`."""
    steps = check_path(tables, path)
    every = np.arange(tables.num_epochs)
    changes_s = tables.move_s[every[1:], steps[:-1], steps[1:]]
    iterations = _done(tables, steps)
    done, whole_s = float(iterations.sum()), _total_s(tables, iterations)
    clock_s = tables.num_epochs * tables.epoch_s
    change_s = float(changes_s.sum()) * whole_s / clock_s
    sent_bytes = (iterations * tables.cost_bytes[steps]).sum()
    all_bytes = float(sent_bytes + tables.moved_bytes[steps[:-1], steps[1:]].sum())
    levels = tables.level[steps[:-1], steps[1:]]
    return PathCosts(
        total_s=whole_s,
        change_s=change_s,
        utilisation=done * tables.flops_per_iteration / (tables.peak_flops_per_s * clock_s),
        bytes_per_token=bytes_per_token(all_bytes, done * tables.tokens_per_iteration),
        moves={name: int((levels == number).sum()) for number, name in enumerate(LEVELS)},
    )


def check_path(tables: EpisodeTables, path: npt.ArrayLike) -> Whole:
    """Return a path as an array; refuses one that is none, see `total_s`."""
    steps = np.asarray(path)
    if (
        steps.shape != (tables.num_epochs,)
        or not np.issubdtype(steps.dtype, np.integer)
        or not ((steps >= 0) & (steps < tables.num_plans)).all()
    ):
        raise ValueError(
            f"path: must hold {tables.num_epochs} numbers of plans from 0 to "
            f"{tables.num_plans - 1}, got {path!r}"
        )
    return steps.astype(np.int64)


def _done(tables: EpisodeTables, steps: Whole) -> Real:
    """Iterations of each epoch of a path, (E,)."""
    every = np.arange(tables.num_epochs)
    iterations = -tables.undone[every, steps]
    iterations[1:] -= tables.undone_by_move[every[1:], steps[:-1], steps[1:]]
    return iterations


def _total_s(tables: EpisodeTables, iterations: Real) -> float:
    count, done = tables.num_epochs, float(iterations.sum())
    return equal_work_s(count * tables.epoch_s, count * tables.iterations_per_epoch, done)
