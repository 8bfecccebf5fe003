"""Second stage of the training of Hi-PPO: the move policy, on episodes of the training suite."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agents.decision.frozen_network import freeze_topologies
from agents.decision.situation import TIME_ONLY, Preference
from agents.hi_ppo.moves.move_augmentation import VariantConfig, variant_of
from agents.hi_ppo.moves.move_config import MoveTrainingConfig
from agents.hi_ppo.moves.move_costs import MoveCosts, with_plans, working_plans
from agents.hi_ppo.moves.move_env import MoveGame, game_of
from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.judge.steady_judge import SteadyJudge
from agents.replanning.known_times import KnownTimes
from agents.replanning.pool import candidate_pool
from agents.replanning.tables import EpisodeTables, tables_of
from des import NO_CORRECTIONS, Corrections
from des.base.checks import require_count, require_seed
from des.base.lazy import lazy_imports
from des.base.parallel_map import ParallelMap
from scenarios.frame.files import write_bytes
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import SuiteWorld, suite
from scenarios.train.episode_files import FIGURES, SHARED_ARRAYS, opened_episodes, read_tables
from scenarios.train.hi_ppo_files import MOVES_CSV, MOVES_PT, TABLES
from scenarios.train.hi_ppo_networks import WorldOf
from scenarios.train.update_loop import train_updates

with lazy_imports(__name__):
    from agents.hi_ppo.moves import move_training  # loads torch, which episodes do without

_LARGE_EVERY, _LARGE, _COMMON = 12, (8,), (3, 4, 5, 6)
_MOST_JUDGED, _MOST_SEARCHED, _MOST_PLANS = 15_000, 24, 96
_COMMUNICATION = (0.05, 0.5)
_DRAWS, _VARIANTS = 0, 1  # streams of random numbers of a world

_MANY_EPISODES = MoveTrainingConfig(episodes_per_update=48)
_T = TypeVar("_T")
_U = TypeVar("_U")


def training_world(index: int, seed: int) -> SuiteWorld:
    """Return a world of 3 to 6 domains, or, each twelfth, of 8."""
    block, place = divmod(index, _LARGE_EVERY)
    if place == _LARGE_EVERY - 1:
        return suite("train").with_domains(*_LARGE).world(block, seed)
    return suite("train").with_domains(*_COMMON).world(index - block, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStage:
    """Settings of the training of the move policy, and its worlds.

    Attributes
    ----------
    num_worlds, num_draws
        Worlds of the training suite, and episodes of each. Plans are found on the networks of the
        first draw and serve all.
    num_variants
        Of each world, besides its draws, see `agents.hi_ppo.moves.move_augmentation`.
    communication_share
        Of the variants in which bytes count, by a weight between 0.05 and 0.5; needs the quickest
        plan to send some. Episodes in which they count teach less of those in which they do not.
    world_of
        Gives the worlds; another than `training_world` is told from others by its ``repr``.
    corrections
        Factors that plans and moves are judged with.
    preference
        That of draws, and of variants but for the share above.
    """

    seed: int = 0
    num_worlds: int = 200
    num_draws: int = 3
    num_variants: int = 3
    communication_share: float = 0.0
    variants: VariantConfig = field(default_factory=VariantConfig)
    training: MoveTrainingConfig = _MANY_EPISODES
    world_of: WorldOf = training_world
    corrections: Corrections = NO_CORRECTIONS
    preference: Preference = TIME_ONLY

    @property
    def made_of(self) -> str:
        """Text that tells episodes of other settings."""
        told = f"seed {self.seed}, {self.num_draws} draws"
        if self.world_of is not training_world:
            told += f" of {self.world_of!r}"
        return told if self.corrections == NO_CORRECTIONS else f"{told}, {self.corrections}"

    def __post_init__(self) -> None:
        require_seed("move stage", "seed", self.seed)
        for name in ("num_worlds", "num_draws"):
            require_count("move stage", name, getattr(self, name))
        if self.num_variants < 0 or not 0.0 <= self.communication_share <= 1.0:
            raise ValueError(
                "move stage: num_variants must be at least 0 and communication_share within "
                f"[0, 1], got {self.num_variants!r} and {self.communication_share!r}"
            )


def train_move_stage(
    stage: MoveStage, folder: RunFolder, console: Console, at_work: ParallelMap = map
) -> MovePolicy | None:
    """Make episodes, train on them, and write the policy and the log into the folder.

    Episodes that the folder holds already are not made again, and a training that it holds a
    checkpoint of continues from there. The result is the same wherever episodes are made, to the
    last bit; None if it was stopped before its end.
    """
    with _progress(console) as progress:
        tables = _count(progress, "episodes of worlds", at_work)
        paths = move_tables(stage, folder.path / TABLES, tables)
        games = move_games(stage, paths, _count(progress, "what choices cost", at_work))
    if not console.is_terminal:
        console.print(f"moves: {len(games)} episodes of {len(paths)} worlds", soft_wrap=True)
    trainer = move_training.MoveTrainer(games, config=stage.training, seed=stage.seed)
    outcome = train_updates(
        trainer,
        folder.path / MOVES_PT,
        folder.path / MOVES_CSV,
        move_training.MoveUpdate,
        name="moves",
        tell=lambda report: f"{report.cost:.4f} of 1 for the clairvoyant",
        console=console,
    )
    return MovePolicy(network=trainer.network.eval()) if outcome.is_complete else None


def move_tables(stage: MoveStage, cache: Path, at_work: ParallelMap = map) -> list[Path]:
    """Make the files of all worlds that the folder does not hold, and return all in order.

    Raises
    ------
    ValueError
        If a file there is of another stage.
    """
    cache.mkdir(parents=True, exist_ok=True)
    make = partial(_write_tables, cache, stage)
    return list(at_work(make, range(stage.num_worlds)))


def episodes_of(
    world: SuiteWorld, draw_seeds: Sequence[int], corrections: Corrections = NO_CORRECTIONS
) -> list[EpisodeTables]:
    """Judge the plans that are found on the networks of the first draw in all draws."""
    judge = SteadyJudge(world.workload, world.num_domains, corrections=corrections)
    networks = [freeze_topologies(world, draw_seed) for draw_seed in draw_seeds]
    plans = candidate_pool(
        world,
        draw_seeds[0],
        judge=judge,
        corrections=corrections,
        max_judged=_MOST_JUDGED,
        max_searched=_MOST_SEARCHED,
        max_plans=_MOST_PLANS,
        networks=networks[0],
    ).plans
    times = KnownTimes(judge)
    return [
        tables_of(world, draw_seed, plans, corrections=corrections, times=times, networks=held)
        for draw_seed, held in zip(draw_seeds, networks, strict=True)
    ]


def move_games(
    stage: MoveStage, paths: Sequence[Path], at_work: ParallelMap = map
) -> list[MoveGame]:
    """List the states of all draws and variants of worlds, world by world."""
    play = partial(_games_of, stage)
    return [game for games in at_work(play, enumerate(paths)) for game in games]


def _write_tables(cache: Path, stage: MoveStage, index: int) -> Path:
    path, made_of = cache / f"world-{index:05}.npz", stage.made_of
    if path.exists():
        with opened_episodes(path) as held:
            found = str(held["made_of"])
        if found != made_of:
            raise ValueError(f"{path}: must hold episodes of {made_of}, got {found}")
        return path
    rng = np.random.default_rng([stage.seed, index, _DRAWS])
    draw_seeds = rng.integers(2**62, size=stage.num_draws).tolist()
    world = stage.world_of(index, stage.seed)
    draws = episodes_of(world, draw_seeds, stage.corrections)
    first = draws[0]
    arrays: dict[str, Any] = {
        "made_of": np.array(made_of),
        "plans": np.array([(str(plan.placement), plan.schedule) for plan in first.plans]),
        "iteration_s": np.array([one.iteration_s for one in draws]),
        "move_s": np.array([one.move_s for one in draws], dtype=np.float32),
        **{name: np.asarray(getattr(first, name)) for name in (*SHARED_ARRAYS, *FIGURES)},
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_bytes(path, buffer.getvalue())
    return path


def _games_of(stage: MoveStage, numbered: tuple[int, Path]) -> list[MoveGame]:
    index, path = numbered
    rng = np.random.default_rng([stage.seed, index, _VARIANTS])
    draws = read_tables(path)
    games = [
        game_of(MoveCosts.of(own := with_plans(draw, working), _where_sent(stage.preference, own)))
        for draw in draws
        if len(working := working_plans(draw))
    ]
    for _ in range(stage.num_variants):
        variant = variant_of(draws, stage.variants, rng)
        games.append(game_of(MoveCosts.of(variant, _some_preference(stage, variant, rng))))
    return games


def _some_preference(
    stage: MoveStage, tables: EpisodeTables, rng: np.random.Generator
) -> Preference:
    """Preference of the stage, unless bytes count otherwise this time."""
    share, weight = rng.random(2)
    if share >= stage.communication_share:
        return _where_sent(stage.preference, tables)
    least, most = _COMMUNICATION
    communication = least + (most - least) * float(weight)
    return _where_sent(Preference(time=1.0 - communication, communication=communication), tables)


def _where_sent(preference: Preference, tables: EpisodeTables) -> Preference:
    """The preference; time alone where the quickest plan sends nothing, which is the unit."""
    return preference if tables.cost_bytes[tables.static] > 0 else TIME_ONLY


def _progress(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn("{task.description}  ETA"),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
    )


def _count(progress: Progress, name: str, at_work: ParallelMap) -> ParallelMap:
    """Do work, and show how much of it is done."""

    def counted(function: Callable[[_T], _U], items: Iterable[_T]) -> Iterator[_U]:
        listed = list(items)
        return iter(progress.track(at_work(function, listed), total=len(listed), description=name))

    return counted
