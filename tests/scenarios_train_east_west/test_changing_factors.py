"""Trainings of Hi-PPO in which factors change on the way."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from des import NO_CORRECTIONS
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.stages import TrainingStage, moves_stage, placement_stage
from scenarios.train.east_west.weights import new_policies
from scenarios.train.east_west.worlds import WorldsAround, named_worlds

SLOWER = replace(NO_CORRECTIONS, wan_bandwidth_factor=0.5, compute_time_factor=1.25)
CONFIG = HiPpoConfig(
    model="llama2_7b",
    num_layers=8,
    microbatches=4,
    updates=4,
    worlds=2,
    samples=2,
    move_worlds=1,
    move_draws=1,
    move_updates=4,
    num_epochs=4,
)


@pytest.fixture(scope="module")
def around() -> WorldsAround:
    return WorldsAround(named=tuple(named_worlds(CONFIG).values()))


def placements(around: WorldsAround) -> TrainingStage:
    return placement_stage(CONFIG, around, None, map)


def moves(around: WorldsAround, folder: Path) -> TrainingStage:
    policies = new_policies(CONFIG, around)
    return moves_stage(
        CONFIG,
        around,
        placement=policies.placement,
        start=None,
        folder=folder,
        at_work=map,
    )


def kept(state: dict, folder: Path) -> dict:
    """A state as a file has it, which no training changes."""
    save_checkpoint(folder / "kept.safetensors", state)
    return load_checkpoint(folder / "kept.safetensors")


def assert_same_state(one: dict, other: dict, folder: Path) -> None:
    for name, state in (("one", one), ("other", other)):
        save_checkpoint(folder / name, state)
    assert (folder / "one").read_bytes() == (folder / "other").read_bytes()


def test_placements_are_judged_by_new_factors_from_the_next_update_on(around, tmp_path):
    """Two updates, then other factors: as a run that is resumed there under these factors."""
    whole, without = placements(around), placements(around)
    for stage in (whole, without):
        stage.step()
        stage.step()
    state = kept(whole.trainer.state(), tmp_path)
    whole.recalibrate(SLOWER)
    resumed = placements(around)
    resumed.recalibrate(SLOWER)
    resumed.trainer.load_state(state, source=tmp_path / "placement.safetensors")

    rows = [stage.step() for stage in (whole, resumed, without)]

    assert rows[0] == rows[1] != rows[2]
    assert_same_state(whole.trainer.state(), resumed.trainer.state(), tmp_path)


def test_the_move_policy_continues_on_episodes_of_new_factors(around, tmp_path):
    """Its weights stay; its episodes are made again, once for each set of factors."""
    whole = moves(around, tmp_path)
    whole.step()
    trainer, state = whole.trainer, kept(whole.trainer.state(), tmp_path)
    whole.recalibrate(NO_CORRECTIONS)
    assert whole.trainer is trainer

    weights = {name: one.clone() for name, one in trainer.network.state_dict().items()}

    whole.recalibrate(SLOWER)

    assert whole.trainer.update == 1
    for name, tensor in whole.trainer.network.state_dict().items():
        assert torch.equal(tensor, weights[name]), name
    folders = sorted(one.name for one in tmp_path.iterdir() if one.is_dir())
    assert len(folders) == 2
    resumed = moves(around, tmp_path)
    resumed.recalibrate(SLOWER)
    resumed.trainer.load_state(state, source=tmp_path / "moves.safetensors")
    assert whole.step() == resumed.step()
    assert_same_state(whole.trainer.state(), resumed.trainer.state(), tmp_path)
