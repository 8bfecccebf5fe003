"""PPO: the clipped objective, what is learnt, and what is refused."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from bandit import Bandit, config

from agents.ppo.batch_step import BatchStep
from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from agents.ppo.ppo_loss import Objective, clipped_policy_loss
from agents.ppo.rollout_source import LocalRollouts
from agents.ppo.trained_policy import network_from_payload
from agents.ppo.trainer import PPOTrainer


class Clock:
    """Every step pays 1; an episode is cut every four steps. Observations say nothing.

    There is a single action, so that nothing is learnt but values.
    """

    num_envs = 8
    observation_size = 1
    action_sizes = (1,)
    ordinal_starts = (None,)

    def __init__(self, *, terminates: bool) -> None:
        self._terminates = terminates
        self._num_steps = 0

    def reset(self) -> npt.NDArray[np.float32]:
        return np.ones((self.num_envs, 1), dtype=np.float32)

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        self._num_steps += 1
        ended = np.full(self.num_envs, self._num_steps % 4 == 0)
        return BatchStep(
            observations=self.reset(),
            final_observations=self.reset(),
            rewards=np.ones(self.num_envs, dtype=np.float32),
            terminated=ended & self._terminates,
            truncated=ended & (not self._terminates),
            metrics={},
        )

    def state(self) -> dict[str, object]:
        return {"num_steps": self._num_steps}

    def load_state(self, state: dict[str, object]) -> None:
        num_steps = state["num_steps"]
        assert isinstance(num_steps, int)
        self._num_steps = num_steps

    def close(self) -> None:
        """Nothing was started."""


@pytest.mark.parametrize(
    ("advantage", "ratio", "gradient"),
    [
        (1.0, 1.5, 0.0),  # already gained what may be gained
        (-1.0, 0.5, 0.0),
        (1.0, 1.1, -1.1),  # d(-ratio * advantage) / d(log ratio)
        (1.0, 0.5, -0.5),  # a good action made rarer by chance is always pulled back
        (-1.0, 1.5, 1.5),
    ],
)
def test_clipped_objective_has_no_gradient_where_the_gain_is_clipped(advantage, ratio, gradient):
    log_ratio = torch.tensor([math.log(ratio)], requires_grad=True)

    clipped_policy_loss(log_ratio, torch.tensor([advantage]), 0.2).backward()

    assert log_ratio.grad.item() == pytest.approx(gradient)


@pytest.mark.parametrize("num_decisions", [1, 50])
def test_loss_and_its_gradient_are_those_of_the_plain_formulas(num_decisions):
    generator = torch.Generator().manual_seed(0)

    def drawn(deviation: float = 1.0) -> torch.Tensor:
        noise = torch.randn(num_decisions, generator=generator, dtype=torch.float64)
        return deviation * noise

    log_probs, entropies, values = leaves = [drawn(0.3).requires_grad_() for _ in range(3)]
    old_log_probs, advantages, returns = drawn(0.3), drawn(), drawn()
    objective = Objective(clip_range=0.2, value_coefficient=0.7, entropy_coefficient=0.05)

    loss, figures = objective.loss(
        log_probs,
        entropies,
        values,
        old_log_probs=old_log_probs,
        advantages=advantages,
        returns=returns,
    )
    found = torch.autograd.grad(3 * loss, leaves)

    ratio = (log_probs - old_log_probs).exp()
    policy_loss = clipped_policy_loss(ratio.log(), advantages, 0.2)
    value_loss = ((values - returns) ** 2).mean() / 2
    plain = policy_loss + 0.7 * value_loss - 0.05 * entropies.mean()
    torch.testing.assert_close(loss, plain)
    for one, other in zip(found, torch.autograd.grad(3 * plain, leaves), strict=True):
        torch.testing.assert_close(one, other)
    expected = [policy_loss, value_loss, entropies.mean()]
    expected += [(ratio - 1 - ratio.log()).mean(), ((ratio - 1).abs() > 0.2).double().mean()]
    torch.testing.assert_close(figures, torch.stack(expected))
    assert not figures.requires_grad


def share_of_optimum(trainer: PPOTrainer, environment: Bandit) -> float:
    """What the greedy policy earns after the training."""
    while not trainer.finished:
        trainer.update()
    earned = []
    for _ in range(30):
        observations = torch.from_numpy(environment.reset())
        earned.append(environment.rewards(trainer.network.greedy(observations).numpy()).mean())
    return float(np.mean(earned))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("action_sizes", "ordinal"), [((3, 5), False), ((3, 81), True)], ids=["nominal", "ordinal"]
)
def test_ppo_earns_95_percent_of_the_optimum_of_a_bandit(action_sizes, ordinal, precision):
    environment = Bandit(action_sizes, ordinal)
    settings = config(precision=precision)
    trainer = PPOTrainer.local(environment, settings, seed=1, total_steps=30 * 512)

    assert share_of_optimum(trainer, environment) >= 0.95


def test_ppo_learns_from_several_workers():
    environments = [Bandit((3, 81), True, seed) for seed in range(3)]
    rollouts = LocalRollouts(environments, seed=1)
    trainer = PPOTrainer(rollouts, config(num_steps=8), seed=1, total_steps=30 * 768)

    assert share_of_optimum(trainer, environments[0]) >= 0.95
    assert trainer.step_count == 30 * 768


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_ppo_learns_on_a_cuda_device_and_its_checkpoint_decides_on_the_processor(tmp_path: Path):
    environment = Bandit((3, 81), True)
    settings = config(device="cuda")
    trainer = PPOTrainer.local(environment, settings, seed=1, total_steps=30 * 512)
    while not trainer.finished:
        trainer.update()
    assert trainer.recent_actions(10).shape == (10, 2)
    save_checkpoint(tmp_path / "run.safetensors", trainer.state())
    payload = load_checkpoint(tmp_path / "run.safetensors")

    network = network_from_payload(payload["policy"], source=tmp_path / "run.safetensors")
    observations = torch.from_numpy(environment.reset())
    earned = environment.rewards(network.greedy(observations).numpy())
    assert earned.mean() >= 0.9
    resumed = PPOTrainer.local(Bandit((3, 81), True), settings, seed=1, total_steps=30 * 512)
    resumed.load_state(payload)
    assert resumed.finished


@pytest.mark.parametrize(("terminates", "value"), [(False, 2.0), (True, 1.6)])
def test_critic_learns_that_a_time_limit_does_not_end_the_task(terminates, value):
    """All states look alike: v = 1 + v / 2, or v = 1 + 3/4 v / 2 if every fourth step is last."""
    settings = config(discount=0.5, trace_decay=0.0, learning_rate=0.05, num_epochs=4)
    trainer = PPOTrainer.local(Clock(terminates=terminates), settings, seed=0, total_steps=20 * 128)
    while not trainer.finished:
        trainer.update()

    assert trainer.network.value(torch.ones(1, 1)).item() == pytest.approx(value, rel=0.01)


def test_first_gradient_step_sees_the_policy_that_acted():
    """With one minibatch nothing has moved yet: no divergence, nothing clipped, no loss."""
    settings = config(num_epochs=1, num_minibatches=1)
    trainer = PPOTrainer.local(Bandit((3, 81), True), settings, seed=0, total_steps=2 * 512)

    for report in (trainer.update(), trainer.update()):
        assert report.approximate_kl == pytest.approx(0, abs=1e-6)
        assert report.clip_fraction == 0
        assert report.policy_loss == pytest.approx(0, abs=1e-5)  # advantages have mean 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_steps", 0),
        ("num_minibatches", 0),
        ("num_epochs", 0),
        ("learning_rate", math.nan),
        ("final_learning_rate", -1.0),
        ("discount", 1.01),
        ("trace_decay", -0.01),
        ("clip_range", 0.0),
        ("entropy_coefficient", math.inf),
        ("final_entropy_coefficient", -0.1),
        ("value_coefficient", -0.1),
        ("max_gradient_norm", 0.0),
        ("target_kl", 0.0),
        ("hidden_sizes", (64, 0)),
        ("device", "tpu"),
        ("precision", "float16"),
    ],
)
def test_config_names_the_field_that_is_out_of_range(field, value):
    with pytest.raises(ValueError, match=f"PPO: {field} must be .*, got "):
        config(**{field: value})


def test_trainer_refuses_what_it_cannot_split_or_count():
    with pytest.raises(ValueError, match=r"num_minibatches must be at most .* = 512, got 513"):
        PPOTrainer.local(Bandit((3, 5), True), config(num_minibatches=513), seed=0, total_steps=1)
    with pytest.raises(ValueError, match="total_steps must be at least 1, got 0"):
        PPOTrainer.local(Bandit((3, 5), True), config(), seed=0, total_steps=0)
