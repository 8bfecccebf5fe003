"""The stage of the training that makes episodes and trains the move policy on them."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from agents.hi_ppo.moves.move_config import MoveTrainingConfig
from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.replanning.tables import EpisodeTables
from scenarios.frame.run_folder import RunFolder
from scenarios.train.hi_ppo_files import MOVES_CSV, MOVES_PT, TABLES
from scenarios.train.hi_ppo_moves import (
    MoveStage,
    episodes_of,
    move_games,
    move_tables,
    read_tables,
    train_move_stage,
    training_world,
)
from scenarios.train.workplace import workplace

STAGE = MoveStage(
    seed=231,
    num_worlds=2,
    num_draws=2,
    num_variants=2,
    communication_share=1.0,
    training=MoveTrainingConfig(num_updates=2, episodes_per_update=4, num_epochs=1),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of the stage in this process."""
    folder = RunFolder.create(tmp_path_factory.mktemp("moves") / "run")
    train_move_stage(STAGE, folder, Console(quiet=True))
    return folder


def test_the_stage_leaves_a_policy_and_a_row_an_update(trained: RunFolder) -> None:
    policy = MovePolicy.load(trained.path / MOVES_PT)
    with (trained.path / MOVES_CSV).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert policy.network.architecture.hidden_sizes == STAGE.training.hidden_sizes
    assert [row["update_index"] for row in rows] == ["0", "1"]
    assert all(float(row["cost"]) >= 1.0 for row in rows)


def test_other_workers_and_episodes_that_are_there_change_nothing(
    trained: RunFolder, tmp_path: Path
) -> None:
    """Two processes, one of two worlds made before: all files have the same bytes."""
    kept = tmp_path / TABLES
    kept.mkdir()
    (kept / "world-00001.npz").write_bytes((trained.path / TABLES / "world-00001.npz").read_bytes())
    with workplace(2) as at_work:
        train_move_stage(STAGE, RunFolder(path=tmp_path), Console(quiet=True), at_work)
    names = (MOVES_PT, MOVES_CSV, f"{TABLES}/world-00000.npz", f"{TABLES}/world-00001.npz")
    for name in names:
        assert (tmp_path / name).read_bytes() == (trained.path / name).read_bytes(), name


def test_episodes_come_back_from_their_files(trained: RunFolder) -> None:
    """Prices of moves are kept to seven digits, all else to the last bit."""
    paths = move_tables(STAGE, trained.path / TABLES)
    draw_seeds = np.random.default_rng([STAGE.seed, 0, 0]).integers(2**62, size=2).tolist()
    made = episodes_of(training_world(0, STAGE.seed), draw_seeds)
    for one, held in zip(made, read_tables(paths[0]), strict=True):
        for field in dataclasses.fields(EpisodeTables):
            tolerance = 1e-6 if field.name == "move_s" else 0.0
            if field.name in ("plans", "known_from"):
                assert getattr(held, field.name) == getattr(one, field.name)
                continue
            np.testing.assert_allclose(
                getattr(held, field.name), getattr(one, field.name), rtol=tolerance
            )
    assert made[0].plans == made[1].plans
    assert (made[0].iteration_s != made[1].iteration_s).any()


def test_each_world_gives_its_draws_and_its_variants(trained: RunFolder) -> None:
    paths = move_tables(STAGE, trained.path / TABLES)
    games = move_games(STAGE, paths)
    assert len(games) == 2 * (2 + 2)
    assert [len(game.starts) for game in games] == [1] * 8


def test_one_world_in_twelve_is_large() -> None:
    worlds = [training_world(index, 0) for index in range(13)]
    assert [at for at, world in enumerate(worlds) if world.num_domains == 8] == [11]
    assert {world.num_domains for world in worlds} <= {3, 4, 5, 6, 8}
    assert len({world.digest for world in worlds}) == 13


def test_episodes_of_another_stage_are_not_taken(trained: RunFolder) -> None:
    other = dataclasses.replace(STAGE, num_draws=3)
    with pytest.raises(ValueError, match=f"must hold episodes of seed {STAGE.seed}, 3 draws"):
        move_tables(other, trained.path / TABLES)
    with pytest.raises(ValueError, match="communication_share within"):
        MoveStage(communication_share=2.0)
    with pytest.raises(ValueError, match="num_worlds must be"):
        MoveStage(num_worlds=0)
