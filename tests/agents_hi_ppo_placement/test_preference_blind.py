"""Inputs of a placement policy: the preference may be left out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from search_cases import drawn_case
from small_policies import save_placement, situation_on

from agents.decision.situation import Preference
from agents.hi_ppo.placement.config import PlacementArchitecture, PlacementConfig
from agents.hi_ppo.placement.features import PREFERENCE, Features, features_of, seen_by
from agents.hi_ppo.placement.placement_checkpoint import load_placement
from agents.hi_ppo.placement.placement_policy import PlacementPolicy, drawn_plans
from agents.hi_ppo.placement.placement_rollouts import Worlds, collect
from agents.hi_ppo.placement.proposals import Proposer
from agents.judge.look_ahead import PlanJudge
from agents.judge.steady_judge import SteadyJudge
from agents.ppo.checkpoint import load_checkpoint
from des import simulate

TOLD = PlacementArchitecture(width=16, edge_width=8, num_rounds=1)
BLIND = replace(TOLD, sees_preference=False)
WISH = Preference(time=0.2, utilisation=0.3, communication=0.5)


def described(preference: Preference) -> Features:
    topology, workload = drawn_case(3, 4, 12)
    job = SteadyJudge(workload, topology.num_domains).job_of(topology)
    return features_of(topology, job, job, preference=preference)


def test_the_preference_stands_where_it_is_looked_for():
    np.testing.assert_allclose(described(WISH).whole[PREFERENCE], [0.2, 0.3, 0.5], rtol=1e-6)


def test_who_is_told_sees_all_and_who_is_not_sees_all_but_the_preference():
    features = described(WISH)

    assert seen_by(TOLD, features) is features
    seen = seen_by(BLIND, features)
    np.testing.assert_array_equal(seen.whole[PREFERENCE], np.zeros(3))
    rest = np.delete(np.arange(len(seen.whole)), PREFERENCE)
    np.testing.assert_array_equal(seen.whole[rest], features.whole[rest])
    assert seen.nodes is features.nodes
    assert features.whole[PREFERENCE].any()  # those of the caller stay as they are


def test_all_preferences_look_the_same_to_who_is_not_told():
    for one, other in zip(
        seen_by(BLIND, described(WISH))[:3],
        seen_by(BLIND, described(Preference(time=1.0, utilisation=0.0, communication=0.0)))[:3],
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("architecture", [TOLD, BLIND])
def test_proposers_and_trainings_show_a_policy_no_more_than_it_sees(architecture):
    policy = PlacementPolicy(architecture, torch.Generator().manual_seed(0))
    topology, workload = drawn_case(3, 4, 12)
    worlds = Worlds(iter([(topology, topology, workload)] * 4), np.random.default_rng(0))
    drawn = worlds.drawn(4, 4)

    config = PlacementConfig(samples_per_world=2, look_ahead_budget=0)
    shown = collect(policy, drawn, config, torch.Generator().manual_seed(0)).networks.whole
    situation = situation_on(preference=WISH)
    proposer = Proposer(policy)
    judge = proposer.judge_of(situation.workload, situation.topology, situation.corrections)
    asked = proposer.features_of(situation, judge, judge.job_of(situation.topology))

    for whole in (*shown.numpy(), asked.whole):
        assert whole[PREFERENCE].any() == architecture.sees_preference


@pytest.mark.parametrize("architecture", [TOLD, BLIND])
def test_what_a_policy_sees_is_in_its_file(tmp_path, architecture):
    path = tmp_path / "placement.safetensors"
    save_placement(path, PlacementPolicy(architecture, torch.Generator().manual_seed(0)))

    assert load_placement(path).architecture == architecture


def test_files_from_before_there_was_a_choice_are_of_policies_that_are_told(tmp_path):
    """Those that are told are written as they were then."""
    path = tmp_path / "placement.safetensors"
    save_placement(path, PlacementPolicy(TOLD, torch.Generator().manual_seed(0)))

    sizes = load_checkpoint(path)["architecture"]
    assert sizes == {"width": 16, "edge_width": 8, "num_rounds": 1}
    assert load_placement(path).architecture.sees_preference


def test_sight_must_be_a_flag():
    with pytest.raises(ValueError, match="sees_preference must be True or False, got 'no'"):
        replace(TOLD, sees_preference="no")


def test_drawn_plans_fit_and_the_likeliest_order_comes_first():
    policy = PlacementPolicy(TOLD, torch.Generator().manual_seed(0))
    topology, workload = drawn_case(3, 4, 12)
    judge = PlanJudge(workload, topology.num_domains)
    job = judge.job_of(topology)
    features = features_of(topology, job, job)

    plans = drawn_plans(policy, features, judge, job, count=20, rng=np.random.default_rng(0))
    again = drawn_plans(policy, features, judge, job, count=20, rng=np.random.default_rng(0))
    greedy = judge.plan(*policy.best_plan(features, judge, job))

    assert plans == again
    assert len(set(plans)) > 1
    assert all(simulate(topology, workload, plan).fits_memory for plan in plans)
    assert _order(plans[0]) == _order(greedy)


def _order(plan):
    return [stage.domain for stage in plan.placement.stages]
