"""Whether plans stay good while the load moves."""

from dataclasses import dataclass
from itertools import cycle

from agents.epochs.tables import held_topology
from des import NO_CORRECTIONS
from des.compiled.simulate import simulate_compiled
from scenarios.kpi.episodes import Episode, run_episode
from scenarios.kpi.methods import HoldPlan, searched_plan
from scenarios.kpi.scope import Column, standing_still
from scenarios.kpi.target import Asked, Target, measured
from scenarios.suites import SuiteWorld

WITHIN = 0.10
"""A plan is stable whose iteration takes at most this share longer than the best of its epoch."""

SUITES = ("eval_calm", "eval_held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How one draw went.

    Attributes
    ----------
    is_stable
        Of each epoch: the plan fits, and takes at most `WITHIN` longer than the re-planned best.
    total_s, held_s, free_s
        Time of the scheduler, of the base plan held all the time, and of the best plan of every
        epoch with moves free. [s]
    """

    is_stable: tuple[bool, ...]
    total_s: float
    held_s: float
    free_s: float


def measure(column: Column) -> list[Target]:
    """Measure the share of epochs that are stable under load of +-20 %, links standing still."""
    scope = column.scope
    worlds = [standing_still(world) for name in SUITES for world in scope.worlds(name)]
    draws, num_epochs = list[Stability](), 0
    for turn, world in enumerate(cycle(worlds)):
        if num_epochs >= scope.sizes.num_load_epochs:
            break
        draw = scope.seed + turn // len(worlds)
        draws.append(stability_of(column, world, draw))
        num_epochs += len(draws[-1].is_stable)
    shares = [sum(one.is_stable) / len(one.is_stable) for one in draws]
    stable = sum(sum(one.is_stable) for one in draws)
    _, interval = measured(shares)
    over = [sum(one.total_s for one in draws) / base - 1.0 for base in _bases(draws)]
    notes = (
        f"{num_epochs} epochs of {len(draws)} draws",
        *(
            (
                f"total time: {100 * over[0]:+.2f} % against the base plan held, "
                f"{100 * over[1]:+.2f} % against free moves",
            )
            if draws
            else ()
        ),
    )
    return [
        Target(
            name="stable at load +-20 %",
            definition="share of epochs in which the plan fits and its iteration is within 10 % of "
            "the optimum re-planned for that load with moves free",
            reference="search in every epoch, moves free",
            asked=Asked(sense="at least", reach=0.99, beyond=0.999),
            value=stable / num_epochs if num_epochs else float("nan"),
            interval=interval,
            notes=notes,
        )
    ]


def stability_of(column: Column, world: SuiteWorld, draw: int) -> Stability:
    """Measure one draw."""
    num_epochs = min(world.num_epochs, column.scope.sizes.num_epochs)
    episode = run_episode(world, draw, column.make(), num_epochs=num_epochs)

    def references() -> tuple[float, list[float]]:
        held = run_episode(world, draw, HoldPlan(), num_epochs=num_epochs)
        return held.total_s, [_best_s(world, draw, epoch) for epoch in range(num_epochs)]

    held_s, best_s = column.scope.once(("stable", world.name, draw, num_epochs), references)
    return Stability(
        is_stable=stable_epochs(episode, best_s),
        total_s=episode.total_s,
        held_s=held_s,
        free_s=world.iterations_per_epoch * sum(best_s),
    )


def stable_epochs(episode: Episode, best_s: list[float]) -> tuple[bool, ...]:
    """Which epochs of an episode are stable, given the best iteration time of each. [s]"""
    return tuple(
        epoch.fits_memory and epoch.iteration_s <= (1.0 + WITHIN) * best
        for epoch, best in zip(episode.epochs, best_s, strict=True)
    )


def _best_s(world: SuiteWorld, draw: int, epoch: int) -> float:
    topology = held_topology(world, draw, epoch)
    plan = searched_plan(topology, world.workload)
    return simulate_compiled(topology, world.workload, plan, NO_CORRECTIONS).makespan_s


def _bases(draws: list[Stability]) -> tuple[float, float]:
    return sum(one.held_s for one in draws), sum(one.free_s for one in draws)
