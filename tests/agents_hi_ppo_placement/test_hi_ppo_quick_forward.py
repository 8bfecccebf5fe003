"""The forward pass of one network without torch against the one with it."""

import numpy as np
import pytest
import torch

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.features import features_of
from agents.hi_ppo.placement.numpy_forward import quick_scores
from agents.hi_ppo.placement.placement_policy import PlacementPolicy, scores_of
from agents.hi_ppo.placement.pointer import networks_of
from agents.judge.steady_judge import SteadyJudge
from scenarios.suites import suite


@pytest.mark.parametrize("num_rounds", [0, 3])
@pytest.mark.parametrize("num_domains", [4, 10])
def test_scores_of_one_network_are_those_of_torch_but_for_rounding(
    num_domains: int, num_rounds: int
) -> None:
    """Every score agrees to 1e-5, with weights that are not those of the beginning."""
    world = suite("hard").with_domains(num_domains).world(0, 3)
    judge = SteadyJudge(world.workload, num_domains)
    base = judge.job_of(world.topology)
    job = judge.job_of(world.epoch_topology(1, 2).at_start())
    features = features_of(world.topology, base, job)
    generator = torch.Generator().manual_seed(num_domains)
    policy = PlacementPolicy(PlacementArchitecture(num_rounds=num_rounds), generator)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.add_(0.1 * torch.randn(weights.shape, generator=generator))
        expected = scores_of(policy(networks_of([features]))[1], 0)

    found = quick_scores(policy, features)

    for name in ("pair", "chosen", "drift"):
        values = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), values, rtol=1e-5, atol=1e-5)
