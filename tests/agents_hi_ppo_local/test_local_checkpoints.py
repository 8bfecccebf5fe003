"""Checkpoints of the local policy: read back the same, others refused by name."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from agents.hi_ppo.local.draws import draw_case
from agents.hi_ppo.local.features import (
    CONTEXT_FEATURES,
    OPTION_FEATURES,
    WITHOUT_ESTIMATE,
    observe,
)
from agents.hi_ppo.local.options import options_of
from agents.hi_ppo.local.policy import LocalArchitecture, load_policy, option_scores, save_policy
from agents.hi_ppo.local.training_policy import LocalPolicy
from agents.ppo.checkpoint import CheckpointError, save_checkpoint


def fresh_policy(seed: int = 0, **changes: object) -> LocalPolicy:
    return LocalPolicy(LocalArchitecture(**changes), torch.Generator().manual_seed(seed))


def test_a_checkpoint_gives_the_same_policy_back(tmp_path):
    policy = fresh_policy(3, option_features=WITHOUT_ESTIMATE, hidden_size=16)
    policy.standardise(torch.rand(5, len(CONTEXT_FEATURES)), torch.rand(9, len(OPTION_FEATURES)))
    path = tmp_path / "policy.safetensors"
    save_policy(path, policy, {"seed": 3})

    again = load_policy(path)
    assert again.architecture == policy.architecture
    case = draw_case(np.random.default_rng([2, 7]))
    seen = observe(case, options_of(case))
    np.testing.assert_array_equal(option_scores(again, seen), option_scores(policy, seen))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "policy"}, "kind must be 'local-agent', got 'policy'"),
        ({"architecture": None}, "local-agent must hold an architecture"),
        ({"architecture": {"hidden_size": 64, "depth": 3}}, "unexpected keyword argument 'depth'"),
        ({"architecture": {"hidden_size": 32}}, r"must be of shape \(32, 34\), got \(64, 34\)"),
        ({"architecture": {"option_features": ("colour",)}}, "got .* and \\('colour',\\)"),
        ({"parameters": None}, "local-agent must hold an architecture and parameters"),
    ],
)
def test_checkpoints_of_other_policies_are_refused(tmp_path, changes, message):
    policy = fresh_policy()
    payload = {
        "kind": "local-agent",
        "architecture": asdict(policy.architecture),
        "parameters": dict(policy.state_dict()),
        "training": {},
    }
    path = tmp_path / "policy.safetensors"
    save_checkpoint(path, payload | changes)

    with pytest.raises(CheckpointError, match=message):
        load_policy(path)


def test_policies_trained_before_there_were_several_servers_are_refused_by_name(tmp_path):
    payload = {
        "kind": "local-agent",
        "architecture": {"context_features": ("free_gpus", "layers"), "hidden_size": 64},
        "parameters": {},
        "training": {},
    }
    save_checkpoint(tmp_path / "local-0.safetensors", payload)

    message = (
        r"local-0\.safetensors: local policy must see domains of several servers"
        r".*scenarios\.east_west_train local"
    )
    with pytest.raises(CheckpointError, match=message):
        load_policy(tmp_path / "local-0.safetensors")
