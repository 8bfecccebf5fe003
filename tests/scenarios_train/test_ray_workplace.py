"""Work of both policies' trainings on Ray: the same bytes as in this process, errors by name."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_output import error_of

from agents.hi_ppo.placement.config import PlacementArchitecture, PlacementConfig
from agents.hi_ppo.placement.placement_training import PlacementTrainer
from agents.ppo.checkpoint import save_checkpoint
from des.base.parallel_map import ParallelMap
from scenarios.train.east_west.command import main
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.worlds import WorldsAround, named_worlds
from scenarios.train.hi_ppo_moves import MoveStage, move_tables
from scenarios.train.hi_ppo_networks import training_networks
from scenarios.train.workplace import workplace

CONFIG = HiPpoConfig(model="llama2_7b", num_layers=8, microbatches=4, num_epochs=4)


def left_by(at_work: ParallelMap, folder: Path) -> list[bytes]:
    """Files of an update of the placement policy, and of the episodes of a world."""
    around = WorldsAround(named=tuple(named_worlds(CONFIG).values()))
    trainer = PlacementTrainer(
        training_networks(7, around),
        seed=7,
        architecture=PlacementArchitecture(num_rounds=1),
        config=PlacementConfig(num_updates=1, worlds_per_update=3, samples_per_world=2),
        at_work=at_work,
    )
    trainer.step()
    save_checkpoint(folder / "placement.safetensors", trainer.state())
    stage = MoveStage(seed=7, num_worlds=2, num_draws=1, world_of=around)
    episodes = move_tables(stage, folder / "tables", at_work)
    return [one.read_bytes() for one in (folder / "placement.safetensors", *episodes)]


@pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
def test_ray_changes_nothing_and_hands_errors_on(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "ray").mkdir()
    with workplace(2, "local") as at_work:
        on_ray = left_by(at_work, tmp_path / "ray")
        with pytest.raises(ValueError, match="invalid literal for int"):
            list(at_work(int, ["1", "x"]))
        assert list(at_work(os.nice, [0])) == [os.nice(0)], "no starving beside other work"

    assert on_ray == left_by(map, tmp_path / "here")


@pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
def test_a_cluster_that_is_not_there_is_one_line(tmp_path, capsys):
    error = error_of(
        main, ["moves", "--ray", "127.0.0.1:1", "--out", str(tmp_path / "run")], capsys
    )
    assert "ray: address must be local, auto or host:port of a running cluster" in error
    assert not (tmp_path / "run").exists()
