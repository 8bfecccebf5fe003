"""The network before it has learnt, and what it makes of observations."""

import math

import pytest
import torch

from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.normaliser import ObservationMoments


def network(precision: str = "float32", perturbed: bool = False) -> ActorCritic:
    """Sees three entries within [0, 1]; decides on three nominal and one ordered component."""
    architecture = NetworkArchitecture(
        observation_size=3,
        action_sizes=(4, 9, 2, 3),
        ordinal_starts=(None, 0.5, None, None),
        precision=precision,
    )
    generator = torch.Generator().manual_seed(0)
    result = ActorCritic(architecture, generator)
    result.normaliser.merge(ObservationMoments.of(observations()))
    if perturbed:
        with torch.no_grad():
            noise = torch.randn(result.parameter.shape, generator=generator)
            result.parameter.add_(0.3 * noise)
    return result


def observations(num_rows: int = 200) -> torch.Tensor:
    return torch.rand(num_rows, 3, generator=torch.Generator().manual_seed(1))


def test_first_policy_is_nearly_uniform_over_categories_and_first_values_nearly_nothing():
    first = network()
    probabilities = first.policy(observations()).nominal.logits.softmax(dim=1)

    for component, size in enumerate((4, 2, 3)):
        torch.testing.assert_close(
            probabilities[component, :size],
            torch.full((size, 200), 1 / size),
            atol=0.03,
            rtol=0,
        )
    assert first.value(observations()).abs().max() < 0.1


def test_first_weights_depend_on_the_generator_only():
    torch.manual_seed(0)
    one = network().parameter
    torch.manual_seed(1)
    assert torch.equal(one, network().parameter)
    assert not torch.equal(one, network(perturbed=True).parameter)


def test_actions_come_with_their_log_probabilities_and_values():
    trained = network(perturbed=True)
    inputs = trained.normaliser(observations())
    with torch.no_grad():
        actions, log_probs, values = trained.act(inputs, torch.Generator().manual_seed(0))

    assert actions.shape == (200, 4)
    assert actions.is_contiguous()
    policy = trained.policy(observations())
    torch.testing.assert_close(log_probs, policy.log_prob(actions).detach())
    torch.testing.assert_close(values, trained.value(observations()).detach())
    assert values.std() > 0.1
    assert policy.log_prob(trained.greedy(observations())).mean() > log_probs.mean()


def test_bfloat16_network_is_close_to_the_float32_one():
    exact, rounded = network(perturbed=True), network("bfloat16", perturbed=True)

    difference = exact.value(observations()) - rounded.value(observations())
    assert 0 < difference.abs().max() < 0.05
    assert rounded.parameter.dtype == torch.float32


def test_copies_by_state_decide_alike():
    """So a worker elsewhere needs the architecture and the state only."""
    original = network(perturbed=True)
    copy = ActorCritic(original.architecture, torch.Generator())
    copy.load_state_dict(original.state_dict())

    assert torch.equal(copy.greedy(observations()), original.greedy(observations()))
    assert torch.equal(copy.value(observations()), original.value(observations()))


def test_gradient_of_the_whole_network_is_that_of_finite_differences():
    """Along a random direction, for log-probability, entropy and value together."""
    trained = network(perturbed=True)
    inputs = trained.normaliser(observations(64))
    with torch.no_grad():
        actions, _, _ = trained.act(inputs, torch.Generator().manual_seed(0))

    def total() -> torch.Tensor:
        policy, values = trained(inputs)
        log_probs, entropies = policy.log_prob_and_entropy(actions)
        return (log_probs + 2 * entropies + 3 * values).double().mean()

    (gradient,) = torch.autograd.grad(total(), trained.parameter)
    direction = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(2))
    direction /= direction.norm()
    step = 0.01
    with torch.no_grad():
        trained.parameter.add_(step * direction)
        ahead = total()
        trained.parameter.sub_(2 * step * direction)
        behind = total()
    slope = ((ahead - behind) / (2 * step)).item()
    assert torch.dot(gradient, direction).item() == pytest.approx(slope, rel=0.01, abs=1e-3)
    assert math.isfinite(slope)


def test_architecture_refuses_a_precision_that_there_is_not():
    with pytest.raises(ValueError, match="precision must be one of float32, bfloat16, got 'half'"):
        network(precision="half")
