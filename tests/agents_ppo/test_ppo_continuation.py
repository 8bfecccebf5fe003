"""Training that is interrupted continues to the same bytes, from a state of its own kind alone."""

from pathlib import Path

import numpy as np
import pytest
import torch
from bandit import Bandit, config, trained

from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from agents.ppo.rollout_source import LocalRollouts
from agents.ppo.trainer import PPOTrainer


def test_interrupted_training_continues_to_the_same_bytes(tmp_path: Path):
    for num_updates_before in (0, 1, 3):
        save_checkpoint(tmp_path / "middle.safetensors", trained(num_updates_before).state())
        resumed = PPOTrainer.local(
            Bandit((3, 81), True, seed=99), config(), seed=7, total_steps=4 * 512
        )
        resumed.load_state(load_checkpoint(tmp_path / "middle.safetensors"))
        while not resumed.finished:
            resumed.update()
        save_checkpoint(tmp_path / f"resumed_{num_updates_before}.safetensors", resumed.state())
    save_checkpoint(tmp_path / "straight.safetensors", trained(4).state())

    straight = (tmp_path / "straight.safetensors").read_bytes()
    for num_updates_before in (0, 1, 3):
        assert (tmp_path / f"resumed_{num_updates_before}.safetensors").read_bytes() == straight


def test_training_neither_uses_nor_moves_the_global_generators():
    torch_before, numpy_before = torch.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002
    first = trained(1)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert repr(np.random.get_state()) == numpy_before  # noqa: NPY002

    with torch.random.fork_rng():
        torch.manual_seed(123)
        second = trained(1)
    parameters = zip(first.network.parameters(), second.network.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in parameters)


def test_state_is_a_snapshot_that_training_does_not_change():
    trainer = trained(1)
    state = trainer.state()
    other = trained(0)
    other.load_state(state)
    trainer.update()
    other.update()

    again = trained(0)
    again.load_state(state)
    again.update()
    assert torch.equal(*(t.network.parameter for t in (trainer, again)))


def test_foreign_state_is_refused_by_the_name_of_what_differs():
    state = trained(0).state()
    fresh = trained(0)

    with pytest.raises(CheckpointError, match=r"architecture must be .*5.*got .*81"):
        PPOTrainer.local(Bandit((3, 5), True), config(), 7, 2048).load_state(state)
    with pytest.raises(CheckpointError, match=r"config must be .*got"):
        PPOTrainer.local(Bandit((3, 81), True), config(num_epochs=1), 7, 2048).load_state(state)
    with pytest.raises(CheckpointError, match="seed must be 8, got 7"):
        PPOTrainer.local(Bandit((3, 81), True), config(), 8, 2048).load_state(state)
    two_workers = LocalRollouts([Bandit((3, 81), True) for _ in range(2)], seed=7)
    with pytest.raises(CheckpointError, match="num_workers must be 2, got 1"):
        PPOTrainer(two_workers, config(), 7, 2048).load_state(state)
    with pytest.raises(CheckpointError, match=r"got no \['optimiser'\]"):
        fresh.load_state({name: part for name, part in state.items() if name != "optimiser"})
