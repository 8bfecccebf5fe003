"""The ablation command on two networks, with a policy that has learnt nothing."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from agents.hi_ppo.config import PlacementArchitecture
from agents.hi_ppo.placement_checkpoint import save_placement
from agents.hi_ppo.placement_policy import PlacementPolicy
from agents.hi_ppo.policies import Policies
from agents.hi_ppo.trained_range import TrainedRange
from scenarios.ablations import main
from scenarios.suites import suite


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of random weights."""
    path = tmp_path_factory.mktemp("policies") / "hi_ppo.pt"
    world = suite("train").world(0)
    Policies(
        placement=untrained(rounds=2),
        moves=None,
        trained_range=TrainedRange.of([(world.topology, world.workload)]),
        training={},
    ).save(path)
    return path


def untrained(rounds: int) -> PlacementPolicy:
    """A policy of random weights."""
    architecture = PlacementArchitecture(num_rounds=rounds)
    return PlacementPolicy(architecture, torch.Generator().manual_seed(0)).eval()


def rows(checkpoint: Path, out: Path, *more: str) -> pd.DataFrame:
    """What the command writes for two networks of four domains."""
    flags = ["--num-domains", "4", "--num-worlds", "2", "--checkpoint", str(checkpoint)]
    assert main([*flags, "--out", str(out), *more]) == 0
    return pd.read_csv(out / "ablations.csv")


def test_no_variant_beats_the_proven_optimum_and_knowing_the_links_never_hurts(
    checkpoint, tmp_path, capsys
):
    without = tmp_path / "placement.pt"
    save_placement(without, untrained(rounds=0))

    found = rows(checkpoint, tmp_path / "run", "--no-encoder", str(without))

    gaps = found.pivot(index="network", columns="variant", values="gap")
    assert (gaps > -1e-9).all(axis=None)
    assert (gaps["calibrated"] <= gaps["uncalibrated"] + 1e-9).all()
    assert (gaps["hi_ppo"] <= gaps["no_look_ahead"] + 1e-9).all()
    assert set(gaps) == {
        "hi_ppo",
        "no_look_ahead",
        "no_policy",
        "no_encoder",
        "flat",
        "calibrated",
        "uncalibrated",
    }
    assert "gap to the best plan known" in capsys.readouterr().out


def test_equal_runs_give_equal_gaps(checkpoint, tmp_path):
    one, other = (rows(checkpoint, tmp_path / name) for name in ("one", "other"))

    pd.testing.assert_frame_equal(one.drop(columns="response_s"), other.drop(columns="response_s"))


def test_a_checkpoint_of_something_else_is_one_line(checkpoint, tmp_path, capsys):
    other = tmp_path / "placement.pt"
    save_placement(other, untrained(rounds=0))

    assert main(["--checkpoint", str(other), "--out", str(tmp_path / "run")]) == 2
    assert "kind must be hi_ppo, got 'placement_policy'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
