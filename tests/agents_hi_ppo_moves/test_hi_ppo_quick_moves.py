"""The move policy without torch against the one with it."""

import numpy as np
import pytest
import torch

from agents.hi_ppo.moves.move_network import MoveNetwork
from agents.hi_ppo.moves.move_observation import observation_names
from agents.hi_ppo.moves.move_observer import MoveObservation
from agents.hi_ppo.moves.move_policy import MoveArchitecture, MovePolicy, quick_logits
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES
from agents.ppo.normaliser import ObservationMoments

RULES = PIPELINE_RULES.rules
SIZE = len(observation_names(PIPELINE_RULES))


def drawn_network(seed: int) -> MoveNetwork:
    """Weights and moments that are not those of the beginning."""
    generator = torch.Generator().manual_seed(seed)
    network = MoveNetwork(MoveArchitecture(), generator)
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(0.1 * torch.randn(weights.shape, generator=generator))
    network.normaliser.merge(ObservationMoments.of(torch.randn(50, SIZE, generator=generator)))
    return network.eval()


@pytest.mark.parametrize("seed", range(4))
def test_logits_of_rules_are_those_of_torch_but_for_rounding(seed):
    network = drawn_network(seed)
    values = 8.0 * np.random.default_rng(seed).normal(size=SIZE)  # some saturate
    observation = values.astype(np.float32)

    with torch.no_grad():
        expected = network(torch.from_numpy(observation).unsqueeze(0)).squeeze(0)

    np.testing.assert_allclose(quick_logits(network, observation), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_rule_is_the_one_that_torch_would_name(seed):
    """Also where rules are as likely as each other: then the first one of them."""
    rng = np.random.default_rng(seed)
    network = drawn_network(seed)
    with torch.no_grad():
        last = network.layers[-1]
        last.weight[10:20] = last.weight[10]
        last.bias[10:20] = last.bias[10] + 3.0
    policy = MovePolicy(network=network)
    for _ in range(40):
        values = rng.normal(size=SIZE).astype(np.float32)
        targets = rng.integers(0, 12, len(RULES))
        with torch.no_grad():
            logits = network(torch.from_numpy(values).unsqueeze(0)).squeeze(0)
        probability = logits.double().softmax(dim=0).numpy()
        likeliest = np.bincount(targets, weights=probability).argmax()
        expected = int(np.where(targets == likeliest, probability, -1.0).argmax())

        rule = policy.choose(MoveObservation(values=values, targets=targets, plans=()))

        assert RULES.index(rule) == expected
