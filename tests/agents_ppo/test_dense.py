"""Layers of the network against the same layers as plain products."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from agents.ppo.dense import (
    ROWS_OF_BLOCK,
    dense_product,
    layers_of,
    num_parameters,
    tanh_layers,
    weight_gradient,
)

SIZES = (21, 64, 48, 11)
ROWS = [1, 100, 2048, ROWS_OF_BLOCK, ROWS_OF_BLOCK + 1, 2 * ROWS_OF_BLOCK + 1024]


def parameters() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    vector = torch.randn(num_parameters(SIZES), generator=generator)
    for layer in layers_of(vector, SIZES):
        layer.weight.div_(layer.weight.shape[1] ** 0.5)
    return vector


def plain(inputs: Tensor, vector: Tensor) -> Tensor:
    *hidden_layers, last = layers_of(vector, SIZES)
    hidden = inputs
    for layer in hidden_layers:
        hidden = (hidden @ layer.weight.T + layer.bias).tanh()
    return (hidden @ last.weight.T + last.bias).T


def ours(inputs: Tensor, vector: Tensor) -> Tensor:
    return tanh_layers(inputs, vector, SIZES, torch.float32)


def in_bfloat16(inputs: Tensor, vector: Tensor) -> Tensor:
    return tanh_layers(inputs, vector, SIZES, torch.bfloat16)


Network = Callable[[Tensor, Tensor], Tensor]


def gradient_of(network: Network, inputs: Tensor, vector: Tensor, of_outputs: Tensor) -> Tensor:
    leaf = vector.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(network(inputs, leaf), leaf, of_outputs)
    return gradient


def test_layers_lie_one_after_another_in_the_vector():
    first, second = layers_of(torch.arange(13.0), (2, 3, 1))

    assert first.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert first.bias.tolist() == [6, 7, 8]
    assert second.weight.tolist() == [[9, 10, 11]]
    assert second.bias.tolist() == [12]
    assert num_parameters((2, 3, 1)) == 13


@pytest.mark.parametrize("num_rows", ROWS)
def test_outputs_and_gradients_are_those_of_plain_products(num_rows):
    """For batches of one block and several, whole and not, divisible into images and not."""
    generator = torch.Generator().manual_seed(num_rows)
    inputs = torch.randn(num_rows, SIZES[0], generator=generator)
    of_outputs = torch.randn(SIZES[-1], num_rows, generator=generator) / num_rows
    exactly = (inputs.double(), parameters().double())

    with torch.no_grad():
        found = ours(inputs, parameters())
    torch.testing.assert_close(found, plain(*exactly).float(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        gradient_of(ours, inputs, parameters(), of_outputs),
        gradient_of(plain, *exactly, of_outputs.double()).float(),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("num_rows", [100, 4096])
def test_bfloat16_products_are_right_to_two_digits_and_gradients_are_float32(num_rows):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(num_rows, SIZES[0], generator=generator)
    of_outputs = torch.randn(SIZES[-1], num_rows, generator=generator)

    with torch.no_grad():
        found = in_bfloat16(inputs, parameters())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain(inputs, parameters()), rtol=0, atol=0.05)
    one, other = (
        gradient_of(network, inputs, parameters(), of_outputs) for network in (in_bfloat16, plain)
    )
    assert one.dtype == torch.float32
    for part, expected in zip(layers_of(one, SIZES), layers_of(other, SIZES), strict=True):
        assert ((part.weight - expected.weight).norm() / expected.weight.norm()).item() < 0.02
        assert ((part.bias - expected.bias).norm() / expected.bias.norm()).item() < 0.02


@pytest.mark.parametrize("num_rows", [16, 1000, 1024, 4096, 4100])
def test_linear_and_the_gradient_of_its_weight_are_products(num_rows):
    """Whichever way they take; 4096 rows by 128 x 64 weights go by way of a convolution."""
    generator = torch.Generator().manual_seed(0)
    rows, gradient, weight = (
        torch.randn(shape, generator=generator)
        for shape in ((num_rows, 128), (num_rows, 64), (64, 128))
    )
    bias = torch.randn(64, generator=generator)

    torch.testing.assert_close(
        dense_product(rows, weight, bias), rows @ weight.T + bias, rtol=1e-5, atol=1e-4
    )
    torch.testing.assert_close(
        dense_product(gradient, weight.T), gradient @ weight, rtol=1e-5, atol=1e-4
    )
    torch.testing.assert_close(
        weight_gradient(rows, gradient), gradient.T @ rows, rtol=1e-4, atol=1e-3
    )


def test_equal_batches_give_equal_bits():
    inputs = torch.randn(4096, SIZES[0], generator=torch.Generator().manual_seed(0))
    of_outputs = torch.ones(SIZES[-1], 4096)

    one, other = (gradient_of(ours, inputs.clone(), parameters(), of_outputs) for _ in range(2))

    assert torch.equal(one, other)
