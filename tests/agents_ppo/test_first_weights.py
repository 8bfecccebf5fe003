"""First weights: orthogonal ones of a generator, or nothing where trained ones follow."""

import torch

from agents.ppo.first_weights import draw_linear


def test_first_weights_are_orthogonal_with_their_gain():
    layer = draw_linear(6, 3, torch.Generator().manual_seed(1), 2.0)

    torch.testing.assert_close(layer.weight @ layer.weight.T, 4.0 * torch.eye(3))
    assert not layer.bias.any()


def test_a_layer_that_is_loaded_next_draws_nothing():
    generator = torch.Generator().manual_seed(1)
    trained = draw_linear(6, 3, generator)
    drawn = generator.get_state()

    empty = draw_linear(6, 3, None)

    assert not empty.weight.any()
    assert generator.get_state().equal(drawn)
    empty.load_state_dict(trained.state_dict())
    assert empty.weight.equal(trained.weight)
