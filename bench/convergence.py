"""Convergence time of a training: the default scenario, from several seeds."""

import statistics
import time
from dataclasses import dataclass

from agents.ppo.devices import keep_freed_memory, use_torch_threads
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trainer import PPOTrainer
from bench.report import Section, Table, column
from bench.timing import Effort
from scenarios.train.flat_command import make_scenario_task
from scenarios.train.rollouts import make_rollouts
from scenarios.train.training_config import Config, ppo_config

SEEDS = (0, 1, 2, 3, 4)
WORLDS = {"east_central_west": None, "four_uneven": 40}
"""Shipped worlds, and the layers that the model is divided into, if not its own."""

TOLERANCE = 0.01
SMOOTHED, FINAL = 3, 10
"""Updates of the moving mean, and of the mean at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceRow:
    """One training."""

    world: str = column("world")
    seed: str = column("seed")
    reward: float = column("final reward", "+.4f")
    steps: float = column("steps to within 1 %", ",.0f")
    wall_s: float = column("seconds", ".1f")
    all_steps: int = column("all steps", ",")
    all_wall_s: float = column("all seconds", ".1f")


def measure(effort: Effort) -> Section:
    """Train every seed on every world, one after another."""
    keep_freed_memory()
    seeds, steps = (SEEDS[:2], 2048) if effort.is_quick else (SEEDS, Config().steps)
    tables = []
    for world, num_layers in WORLDS.items():
        config = Config(network=world, num_layers=num_layers, steps=steps)
        if effort.is_quick:
            config = Config(network=world, num_layers=num_layers, steps=steps, num_envs=16)
        _train(config, ppo_config(config), seed=SEEDS[-1] + 1, most_updates=1)  # compiles
        rows = [_row(config, seed) for seed in seeds]
        tables.append(
            Table(title=f"Training on {world}", rows=[*rows, _median(rows)], in_page=False)
        )
    return Section(
        name="convergence",
        tables=tables,
        notes=[
            f"`scenarios.east_west_train` with its defaults on {Config().workers} threads of the "
            f"environment and {Config().torch_threads} of torch, without evaluation. The mean "
            f"reward of {SMOOTHED} updates stays within {100 * TOLERANCE:g} % of the mean of the "
            f"last {FINAL} from the given step on; rewards are those of sampled actions."
        ],
    )


def first_within(rewards: list[float]) -> int:
    """Position of the first update from which the smoothed reward stays near the final one.

    Examples
    --------
    >>> first_within([0.0, 0.5, *[1.0] * 20])
    4
    """
    final = statistics.fmean(rewards[-FINAL:])
    smoothed = [
        statistics.fmean(rewards[max(0, at - SMOOTHED + 1) : at + 1]) for at in range(len(rewards))
    ]
    near = [abs(one - final) <= TOLERANCE * abs(final) for one in smoothed]
    outside = [at for at, is_near in enumerate(near) if not is_near]
    return min(outside[-1] + 1, len(rewards) - 1) if outside else 0


def _row(config: Config, seed: int) -> ConvergenceRow:
    ends = _train(config, ppo_config(config), seed=seed)
    rewards = [reward for _, _, reward in ends]
    steps, wall_s, _ = ends[first_within(rewards)]
    return ConvergenceRow(
        world=config.network,
        seed=str(seed),
        reward=statistics.fmean(rewards[-FINAL:]),
        steps=steps,
        wall_s=wall_s,
        all_steps=ends[-1][0],
        all_wall_s=ends[-1][1],
    )


def _train(
    config: Config, ppo: PPOConfig, *, seed: int, most_updates: int | None = None
) -> list[tuple[int, float, float]]:
    """Train; returns steps, seconds and mean reward after every update."""
    use_torch_threads(config.torch_threads)
    ends: list[tuple[int, float, float]] = []
    with make_rollouts(
        make_scenario_task(config),
        num_envs=config.num_envs,
        num_workers=config.rollout_workers,
        seed=seed,
        num_processes=config.workers,
    ) as rollouts:
        started_s = time.perf_counter()
        trainer = PPOTrainer(rollouts, ppo, seed, config.steps)
        while not trainer.finished and len(ends) != most_updates:
            report = trainer.update()
            ends.append((report.step_count, time.perf_counter() - started_s, report.mean_reward))
    return ends


def _median(rows: list[ConvergenceRow]) -> ConvergenceRow:
    return ConvergenceRow(
        world=rows[0].world,
        seed="median",
        reward=statistics.median(row.reward for row in rows),
        steps=statistics.median(row.steps for row in rows),
        wall_s=statistics.median(row.wall_s for row in rows),
        all_steps=rows[0].all_steps,
        all_wall_s=statistics.median(row.all_wall_s for row in rows),
    )
