"""Flat PPO beside Hi-PPO, and what the preference is worth: both commands, made very small."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from command_output import PAPER, assert_measurement_is_written
from small_policies import save_placement, situation_on

from agents.decision.depths import DEPTHS
from agents.flat.compiled_batch import is_compilable
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.policies import shipped
from des import Plan
from scenarios.study.ablations.flat import main
from scenarios.study.ablations.flat_training import FlatScheduler, flat_task, own_course, train_flat
from scenarios.study.ablations.preference import main as preference
from scenarios.suites import suite

WORLD = suite("eval_held").with_domains(4).world(0)
TASK = flat_task(WORLD, "1f1b_4x")


@pytest.fixture(scope="module")
def flat():
    """A policy after two updates."""
    return train_flat(TASK, seed=0, steps=512, num_envs=16)


def test_a_decision_of_the_training_is_a_stretch_of_the_course():
    """64 epochs of which 8 are alike: 8 decisions, each for the iterations of 8 epochs."""
    assert WORLD.load.dwell_epochs == 8
    assert (TASK.epochs_per_episode, TASK.iterations_per_epoch) == (
        8,
        8 * WORLD.iterations_per_epoch,
    )
    assert is_compilable(TASK)


def test_links_keep_their_bounds_for_a_stretch_and_domains_their_speed():
    course = own_course(WORLD)
    nets = [course.epoch_topology(0, epoch) for epoch in range(0, 32)]

    for epoch, net in enumerate(nets):
        assert net.links == nets[epoch - epoch % 8].links
        assert [one.attainable_fraction for one in net.domains] == [
            one.attainable_fraction for one in WORLD.topology.domains
        ]
        for now, base in zip(net.links, WORLD.topology.links, strict=True):
            assert 0.7 <= now.bandwidth_bytes_per_s / base.bandwidth_bytes_per_s <= 1.3
            assert 0.8 <= now.latency_s / base.latency_s <= 1.2
    assert len({net.links for net in nets}) == 4


def test_equal_seeds_give_equal_flat_policies(flat):
    other = train_flat(TASK, seed=0, steps=512, num_envs=16)

    assert other.last == flat.last
    assert np.isfinite(flat.last.mean_reward)


def test_a_flat_policy_decides_when_links_have_moved_and_only_then(flat):
    scheduler = FlatScheduler(flat)
    course = own_course(WORLD)
    situation = replace(
        situation_on(course.epoch_topology(0, 0), WORLD.workload), base=WORLD.topology
    )
    scheduler.begin()
    first = scheduler.decide(situation).plan
    assert first.schedule == "1f1b_4x"

    held = Plan(placement=TASK.uniform_placement, schedule="1f1b_8x")
    assert scheduler.decide(replace(situation, last_plan=held)).plan == held
    moved = replace(situation, topology=course.epoch_topology(0, 8), last_plan=held)
    assert scheduler.decide(moved).plan.schedule == "1f1b_4x"


def test_the_best_depth_is_no_slower_than_the_only_one(flat):
    situation = situation_on(WORLD.topology, WORLD.workload)
    times_s = []
    for chooses_depth in (False, True):
        scheduler = FlatScheduler(flat, chooses_depth=chooses_depth)
        scheduler.begin()
        plan = scheduler.decide(situation).plan
        assert plan.schedule in DEPTHS
        times_s.append(TASK.simulator(WORLD.topology, WORLD.workload, plan).makespan_s)
    assert times_s[1] <= times_s[0] * (1 + 1e-9)


def test_the_command_writes_a_row_a_course_and_method(tmp_path, capsys):
    out = tmp_path / "run"
    flags = ["--suites", "eval_held", "--num-domains", "4", "--num-worlds", "1", "--seeds", "0"]
    flags += ["--steps", "256", "--num-envs", "16", "--num-epochs", "9", "--out", str(out)]
    assert main([*flags, *PAPER]) == 0

    assert_measurement_is_written(out, rows="flat", figure="methods")
    found = pd.read_csv(out / "flat.csv")
    assert len(found) == 2 * 4
    held = found[found["method"] == "search_once"]
    assert (held[["over_search", "num_changes"]] == 0).all(axis=None)
    own = found[(found["course"] == "own") & (found["method"] == "flat")]
    assert (own["num_changes"] <= 1).all()  # links of 9 epochs move once
    assert "eval_held, own" in capsys.readouterr().out


def test_seeds_that_are_not_shipped_are_refused(tmp_path, capsys):
    assert main(["--seeds", "77", "--out", str(tmp_path / "run")]) == 2
    assert "seed must be one of" in capsys.readouterr().err


def test_asking_for_all_preferences_covers_more_than_asking_for_time(tmp_path, capsys):
    path, out = tmp_path / "placement.safetensors", tmp_path / "run"
    sizes = PlacementArchitecture(num_rounds=1, sees_preference=False)
    save_placement(path, PlacementPolicy(sizes, torch.Generator().manual_seed(0)))

    flags = ["--worlds", "1", "--evaluations", "500", "--checkpoint", str(shipped())]
    flags += ["--no-preference", str(path)]
    assert preference([*flags, "--out", str(out), *PAPER]) == 0

    assert_measurement_is_written(out, rows="preference", figure="methods")
    found = pd.read_csv(out / "preference.csv")
    shares = found.groupby("variant")[["coverage", "hypervolume_ratio"]].mean()
    assert set(shares.index) == {
        *("hi_ppo", "hi_ppo alone", "no_preference", "no_preference alone", "time_only")
    }
    assert ((shares >= 0) & (shares <= 1 + 1e-9)).all(axis=None)
    assert shares["coverage"]["hi_ppo"] > shares["coverage"]["time_only"]
    assert "means ± 95 %" in capsys.readouterr().out
