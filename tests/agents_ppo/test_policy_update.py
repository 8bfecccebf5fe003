"""The update step that all PPO trainings share, and the base of their configurations."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from agents.hi_ppo.local.training import LocalTraining
from agents.hi_ppo.moves.move_config import MoveTrainingConfig
from agents.hi_ppo.placement.config import PlacementConfig
from agents.ppo.annealing import cosine_annealing, linear_annealing, weighted_mean_annealing
from agents.ppo.policy_update import PolicyUpdate, ShuffledParts, TensorRows, whole_batch
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.update_config import UpdateConfig

CONFIGS = (PPOConfig, PlacementConfig, MoveTrainingConfig, LocalTraining)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(TensorRows):
    """Inputs (B, 3) and what a line should give there, (B,)."""

    inputs: Tensor
    wanted: Tensor


def some_points(num: int = 10) -> Points:
    generator = torch.Generator().manual_seed(0)
    return Points(
        inputs=torch.randn(num, 3, generator=generator),
        wanted=torch.randn(num, generator=generator),
    )


def line_of(seed: int = 0) -> nn.Linear:
    layer = nn.Linear(3, 1, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        layer.weight.copy_(torch.randn(1, 3, generator=generator))
        layer.bias.zero_()
    return layer


def update_of(line: nn.Linear, config: UpdateConfig, **changes: object) -> PolicyUpdate[Points]:
    def loss(batch: Points, entropy_coefficient: float) -> tuple[Tensor, Tensor]:
        error = (line(batch.inputs).squeeze(1) - batch.wanted).square().mean()
        return error, torch.stack((error.detach(), torch.tensor(entropy_coefficient)))

    given = {
        "config": config,
        "optimiser": torch.optim.SGD(line.parameters(), lr=1.0),
        "loss": loss,
        "figure_names": ("error", "entropy_coefficient"),
        "minibatches": whole_batch,
    }
    return PolicyUpdate(**{**given, **changes})


def test_a_step_is_one_of_torch_with_its_gradients_clipped():
    """Written out by PyTorch's own functions: to the last bit."""
    line, other, points = line_of(), line_of(), some_points()
    config = UpdateConfig(num_epochs=3, learning_rate=0.5, max_gradient_norm=0.01)

    update_of(line, config).descend(points, index=0, progress=0.5)

    optimiser = torch.optim.SGD(other.parameters(), lr=0.25)
    for _ in range(3):
        optimiser.zero_grad()
        (other(points.inputs).squeeze(1) - points.wanted).square().mean().backward()
        nn.utils.clip_grad_norm_(other.parameters(), 0.01)
        optimiser.step()
    assert torch.equal(line.weight, other.weight)
    assert torch.equal(line.bias, other.bias)


def test_figures_are_means_over_minibatches_and_coefficients_are_annealed():
    config = UpdateConfig(
        num_epochs=2, learning_rate=1e-9, entropy_coefficient=0.5, final_entropy_coefficient=0.25
    )
    parts = ShuffledParts(num_minibatches=5, generator=torch.Generator().manual_seed(1))
    line, points = line_of(), some_points()
    expected = float((line(points.inputs).squeeze(1) - points.wanted).square().mean().detach())

    outcome = update_of(line, config, minibatches=parts).descend(points, index=3, progress=0.5)

    assert outcome.learning_rate == pytest.approx(0.5e-9)
    assert outcome.figures == pytest.approx({"error": expected, "entropy_coefficient": 0.375})


@pytest.mark.parametrize(("num_minibatches", "sizes"), [(3, [4, 3, 3]), (20, [1] * 10)])
def test_shuffled_parts_have_every_row_once_in_a_new_order(num_minibatches, sizes):
    parts = ShuffledParts(
        num_minibatches=num_minibatches, generator=torch.Generator().manual_seed(0)
    )
    points = Points(inputs=torch.zeros(10, 3), wanted=torch.arange(10.0))

    orders = []
    for _ in range(2):
        batches = list(parts(points))
        assert [len(batch) for batch in batches] == sizes
        orders.append(torch.cat([batch.wanted for batch in batches]).tolist())
        assert sorted(orders[-1]) == list(range(10))
    assert orders[0] != orders[1]


def test_gradients_that_are_not_finite_name_the_training_and_the_update():
    points = Points(inputs=torch.full((2, 3), 1e30), wanted=torch.zeros(2))

    with pytest.raises(RuntimeError, match="PPO: gradients of update 4 must be finite, got norm"):
        update_of(line_of(), UpdateConfig()).descend(points, index=4, progress=0.0)


@pytest.mark.parametrize(
    "law",
    [linear_annealing, weighted_mean_annealing, cosine_annealing],
    ids=lambda law: law.__name__,
)
def test_annealing_falls_from_the_first_value_to_the_final_one(law):
    values = [law(3e-4, 1e-5, done / 7) for done in range(8)]

    assert values == sorted(values, reverse=True)
    assert (values[0], values[-1]) == pytest.approx((3e-4, 1e-5))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("num_epochs", 0, "a whole number of at least 1"),
        ("num_epochs", 1.5, "a whole number of at least 1"),
        ("learning_rate", 0.0, "positive and at most 1"),
        ("final_learning_rate", -1e-9, "at least 0 and finite"),
        ("clip_range", 1.0, r"in \(0, 1\)"),
        ("entropy_coefficient", float("inf"), "at least 0 and finite"),
        ("final_entropy_coefficient", float("nan"), "at least 0 and finite"),
        ("max_gradient_norm", 0.0, "positive and finite"),
    ],
)
def test_every_training_refuses_the_same_values_by_name(config, field, value, allowed):
    with pytest.raises(
        ValueError, match=f"^{config.owner}: {field} must be {allowed}, got {value}"
    ):
        config(**{field: value})
