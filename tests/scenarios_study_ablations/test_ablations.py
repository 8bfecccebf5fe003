"""The ablation command on two networks, with a policy that has learnt nothing."""

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from command_output import assert_refused, error_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t
from small_policies import save_placement, situation_on

from agents.decision.situation import Preference
from agents.hi_ppo.controls import CONTROLS
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.policies import Policies, TrainedRange
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.ablations.ablations_page import over_seeds_and_networks
from scenarios.study.ablations.command import main
from scenarios.study.ablations.variants import alone
from scenarios.suites import suite

QUIET = ("--figures", "")
WITH_WEIGHTS = ("hi_ppo", "no_encoder", "no_preference")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of random weights."""
    path = tmp_path_factory.mktemp("policies") / "hi_ppo.safetensors"
    world = suite("train").world(0)
    Policies(
        placement=untrained(rounds=2),
        moves=None,
        trained_range=TrainedRange.of([(world.topology, world.workload)]),
        training={},
    ).save(path)
    return path


def untrained(rounds: int, *, seed: int = 0, sees_preference: bool = True) -> PlacementPolicy:
    """A policy of random weights."""
    architecture = PlacementArchitecture(num_rounds=rounds, sees_preference=sees_preference)
    return PlacementPolicy(architecture, torch.Generator().manual_seed(seed)).eval()


def rows(checkpoint: Path, out: Path, *more: str) -> pd.DataFrame:
    """What the command writes for two networks of four domains."""
    flags = ["--num-domains", "4", "--num-worlds", "2", "--checkpoint", str(checkpoint)]
    assert main([*flags, "--out", str(out), *more]) == 0
    return pd.read_csv(out / "ablations.csv")


@pytest.fixture(scope="module")
def whole(checkpoint, tmp_path_factory) -> tuple[Path, pd.DataFrame]:
    """An uninterrupted run and its rows without wall times; read-only."""
    out = tmp_path_factory.mktemp("ablations") / "run"
    return out, rows(checkpoint, out, *QUIET).drop(columns="response_s")


def test_no_variant_beats_the_proven_optimum_and_knowing_the_links_never_hurts(
    checkpoint, tmp_path, capsys
):
    paths = [tmp_path / "first.safetensors", tmp_path / "second.safetensors"]
    for seed, path in enumerate(paths):
        save_placement(path, untrained(rounds=0, seed=seed))
    blind = tmp_path / "blind.safetensors"
    save_placement(blind, untrained(rounds=2, sees_preference=False))

    flags = ["--no-encoder", ",".join(map(str, paths)), "--no-preference", str(blind)]
    found = rows(checkpoint, tmp_path / "run", *flags)

    gaps = found.pivot(index=["network", "seed"], columns="variant", values="gap")
    assert not (gaps < -1e-9).any(axis=None)
    first = gaps.xs(0, level="seed")
    assert (first["calibrated"] <= first["uncalibrated"] + 1e-9).all()
    for name in ("hi_ppo", "no_encoder"):
        assert not (gaps[name] > gaps[f"{name} alone"] + 1e-9).any()
    assert set(gaps) == {
        *(f"{name}{how}" for name in WITH_WEIGHTS for how in ("", " alone")),
        *("untrained", "untrained alone", "random", "neighbours"),
        "calibrated",
        "uncalibrated",
    }
    assert gaps["no_encoder"].notna().sum() == 4  # two networks, two seeds
    out = capsys.readouterr().out
    assert "gap to the best plan known" in out
    assert "K = 4, learned placements against random: " in out


def test_equal_runs_give_equal_gaps(checkpoint, whole, tmp_path):
    other = rows(checkpoint, tmp_path / "other", *QUIET)

    pd.testing.assert_frame_equal(whole[1], other.drop(columns="response_s"))


def test_a_run_that_was_cut_off_continues_with_the_networks_that_are_missing(
    checkpoint, whole, tmp_path, capsys
):
    out = Path(shutil.copytree(whole[0], tmp_path / "run"))
    first, second = sorted((out / "networks").iterdir())
    second.unlink()
    kept = first.read_bytes()

    again = rows(checkpoint, out, "--resume", *QUIET)

    pd.testing.assert_frame_equal(again.drop(columns="response_s"), whole[1])
    assert first.read_bytes() == kept
    flags = ["--resume", "--num-domains", "4", "--num-worlds", "3", "--out", str(out)]
    assert main([*flags, "--checkpoint", str(checkpoint)]) == 2
    assert "num_worlds must be 2 as in" in capsys.readouterr().err


def test_the_look_ahead_of_first_plans_finds_the_optimum_of_four_domains(checkpoint, tmp_path):
    """Whatever the orders it begins with; the weights are random."""
    found = rows(checkpoint, tmp_path / "run", "--look-ahead", "first", *QUIET)

    gaps = found.pivot(index="network", columns="variant", values="gap")
    assert (gaps[["hi_ppo", *CONTROLS]] < 1e-9).all(axis=None)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--look-ahead", "long"], "look_ahead must be quick or first, got 'long'"),
        (["--num-domains", "4,12"], "num_domains must be some of 4, 5, 6, 10; got 4, 12"),
    ],
)
def test_bad_flags_are_one_line(checkpoint, flags, message, tmp_path, capsys):
    out = tmp_path / "run"
    argv = ["--checkpoint", str(checkpoint), *flags, "--out", str(out)]
    assert_refused(main, argv, message, capsys, unwritten=out)


def test_a_checkpoint_of_something_else_is_one_line(checkpoint, tmp_path, capsys):
    other = tmp_path / "placement.safetensors"
    save_placement(other, untrained(rounds=0))

    assert main(["--checkpoint", str(other), "--out", str(tmp_path / "run")]) == 2
    assert "kind must be hi_ppo, got 'placement_policy'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--no-encoder", "num_rounds must be 0 for no_encoder, got 2"),
        ("--no-preference", "sees_preference must be False for no_preference, got True"),
    ],
)
def test_a_file_of_another_variant_is_refused(checkpoint, tmp_path, capsys, flag, message):
    path = tmp_path / "placement.safetensors"
    save_placement(path, untrained(rounds=2))

    flags = ["--checkpoint", str(checkpoint), flag, str(path), "--out", str(tmp_path / "run")]
    assert message in error_of(main, flags, capsys)


def test_who_is_not_told_the_preference_decides_the_same_under_all():
    bytes_only = Preference(time=0.0, utilisation=0.0, communication=1.0)
    decide = alone(untrained(rounds=2, sees_preference=False))

    one = decide(situation_on())

    assert one is not None
    assert decide(situation_on(preference=bytes_only)) == one


def test_an_order_that_holds_the_layers_under_no_depth_is_no_plan():
    situation = situation_on()
    tight = tuple(
        replace(domain, gpu_memory_bytes=domain.gpu_memory_bytes / 20)
        for domain in situation.topology.domains
    )
    topology = replace(situation.topology, domains=tight)

    assert alone(untrained(rounds=2))(situation_on(topology, base=topology)) is None


def test_an_interval_over_seeds_and_networks_by_hand():
    """Means of networks are 1 and 3, those of seeds 1.5 and 2.5: variances 2 / 2 and 0.5 / 2."""
    interval = over_seeds_and_networks(np.array([[0.5, 2.5], [1.5, 3.5]]))

    freedom = 1.25**2 / (1.0**2 / 1 + 0.25**2 / 1)
    assert interval.mean == 2.0
    assert interval.half_width == pytest.approx(t.ppf(0.975, freedom) * math.sqrt(1.25))


@given(st.lists(st.integers(-10, 10), min_size=2, max_size=6), st.integers(2, 4))
def test_seeds_that_agree_leave_the_interval_of_networks(values, num_seeds):
    """One seed is the interval of its networks; more of the same do not make it narrower."""
    one = over_seeds_and_networks(np.array([values]))
    more = over_seeds_and_networks(np.array([values] * num_seeds))

    plain = mean_and_interval(values)
    for interval in (one, more):
        assert interval.mean == pytest.approx(plain.mean, abs=1e-9)
        assert interval.half_width == pytest.approx(plain.half_width, rel=1e-6, abs=1e-9)


def test_figures_that_are_missing_have_no_interval():
    with pytest.raises(ValueError, match="values must be a non-empty table of finite numbers"):
        over_seeds_and_networks(np.array([[1.0, math.nan]]))


def test_with_a_trainer_bound_plans_are_compared_with_rules_and_the_search(checkpoint, tmp_path):
    """No gap is below the best of all, and the best has none."""
    found = rows(checkpoint, tmp_path / "run", "--trainer", "megatron", *QUIET)

    gaps = found.pivot(index=["variant", "seed"], columns="network", values="gap")
    assert set(found["variant"]) == {"hi_ppo", *CONTROLS, "rules", "search"}
    assert (gaps.min() == 0.0).all()
    assert (gaps.loc["hi_ppo"] < 0.05).all(axis=None)
