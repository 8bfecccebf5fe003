"""Checkpoints with weights that are no numbers, of every kind that is shipped."""

from pathlib import Path

import pytest
import torch

from agents.decide import main
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint

SHIPPED = Path(__file__).resolve().parents[2] / "agents" / "checkpoints"
WEIGHTS = {
    "hi_ppo-0": ("placement", "parameters"),
    "local-0": ("parameters",),
}


def spoiled(tmp_path, name, value):
    """A shipped checkpoint with one weight replaced."""
    payload = load_checkpoint(SHIPPED / f"{name}.safetensors")
    weights = payload
    for key in WEIGHTS[name]:
        weights = weights[key]
    key = next(iter(weights))
    weights[key].reshape(-1)[0] = value
    path = tmp_path / f"{name}.safetensors"
    save_checkpoint(path, payload)
    return path, ".".join((*WEIGHTS[name], key))


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused_by_name(tmp_path, name, value):
    path, key = spoiled(tmp_path, name, value)
    with pytest.raises(CheckpointError, match="must hold finite numbers, got 1 of") as refused:
        load_checkpoint(path)
    assert key in str(refused.value)


def test_a_decision_with_such_weights_is_refused(tmp_path, capsys):
    path, key = spoiled(tmp_path, "hi_ppo-0", float("nan"))
    flags = ["--network", "east_central_west", "--deciders", "both", "--checkpoint", str(path)]
    assert main(flags) == 2
    captured = capsys.readouterr()
    assert key in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")


def test_whole_numbers_and_flags_are_no_matter(tmp_path):
    path = tmp_path / "whole.safetensors"
    save_checkpoint(path, {"counts": torch.arange(3), "flags": torch.tensor([True])})
    assert load_checkpoint(path)["counts"].tolist() == [0, 1, 2]
