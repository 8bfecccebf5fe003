"""PPO: the clipped objective, what is learnt, and exact continuation."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from agents.ppo.batch_step import BatchStep
from agents.ppo.checkpoint import (
    CheckpointError,
    load_checkpoint,
    network_from_payload,
    save_checkpoint,
)
from agents.ppo.networks import ActorCritic
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.ppo_loss import Objective, clipped_policy_loss
from agents.ppo.recent import evenly_spread
from agents.ppo.rollout import Rollout
from agents.ppo.rollout_source import LocalRollouts
from agents.ppo.trainer import Trainer


class Bandit:
    """One-step episodes: the best action is written in the observation.

    Entry 0 names the best of the choices of component 0, entry 1 (all within 0.01 and 0.011) that
    of component 1, entry 2 never changes. The optimum earns 1, and half of it for each component;
    a miss in component 1 costs in proportion to the distance.
    """

    def __init__(self, action_sizes: tuple[int, int], ordinal: bool, seed: int = 0) -> None:
        self.num_envs = 32
        self.observation_size = 3
        self.action_sizes = action_sizes
        self.ordinal_starts = (None, 0.5 if ordinal else None)
        self._rng = np.random.default_rng(seed)
        self._shares = self._rng.random((self.num_envs, 2))

    def reset(self) -> npt.NDArray[np.float32]:
        self._shares = self._rng.random((self.num_envs, 2))
        return self._observed()

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        rewards = self.rewards(actions)
        observations = self.reset()
        return BatchStep(
            observations=observations,
            final_observations=observations,
            rewards=rewards.astype(np.float32),
            terminated=np.ones(self.num_envs, dtype=np.bool_),
            truncated=np.zeros(self.num_envs, dtype=np.bool_),
            metrics={"regret": 1 - rewards},
        )

    def rewards(self, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        first, second = self.action_sizes
        hit = actions[:, 0] == np.floor(self._shares[:, 0] * first)
        distance = np.abs(actions[:, 1] - np.round(self._shares[:, 1] * (second - 1)))
        return (hit + np.maximum(0, 1 - 4 * distance / second)) / 2

    def state(self) -> dict[str, object]:
        return {
            "random": self._rng.bit_generator.state,
            "shares": torch.from_numpy(self._shares.copy()),
        }

    def load_state(self, state: dict[str, object]) -> None:
        shares = state["shares"]
        assert isinstance(shares, torch.Tensor)
        self._rng.bit_generator.state = state["random"]
        self._shares = shares.numpy()

    def close(self) -> None:
        """Nothing was started."""

    def _observed(self) -> npt.NDArray[np.float32]:
        constant = np.full(self.num_envs, 0.5)
        columns = (self._shares[:, 0], 0.01 + 0.001 * self._shares[:, 1], constant)
        return np.stack(columns, axis=1).astype(np.float32)


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


def config(**changes: object) -> PPOConfig:
    learning_fast = PPOConfig(num_steps=16, num_minibatches=4, num_epochs=8, learning_rate=3e-3)
    return dataclasses.replace(learning_fast, **changes)


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


def share_of_optimum(trainer: Trainer, environment: Bandit) -> float:
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
    trainer = Trainer.local(environment, settings, seed=1, total_steps=30 * 512)

    assert share_of_optimum(trainer, environment) >= 0.95


def test_ppo_learns_from_several_workers():
    environments = [Bandit((3, 81), True, seed) for seed in range(3)]
    rollouts = LocalRollouts(environments, seed=1)
    trainer = Trainer(rollouts, config(num_steps=8), seed=1, total_steps=30 * 768)

    assert share_of_optimum(trainer, environments[0]) >= 0.95
    assert trainer.step_count == 30 * 768


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_ppo_learns_on_a_cuda_device_and_its_checkpoint_decides_on_the_processor(tmp_path: Path):
    environment = Bandit((3, 81), True)
    settings = config(device="cuda")
    trainer = Trainer.local(environment, settings, seed=1, total_steps=30 * 512)
    while not trainer.finished:
        trainer.update()
    assert trainer.recent_actions(10).shape == (10, 2)
    save_checkpoint(tmp_path / "run.pt", trainer.state())
    payload = load_checkpoint(tmp_path / "run.pt")

    network = network_from_payload(payload["policy"], source=tmp_path / "run.pt")
    observations = torch.from_numpy(environment.reset())
    earned = environment.rewards(network.greedy(observations).numpy())
    assert earned.mean() >= 0.9
    resumed = Trainer.local(Bandit((3, 81), True), settings, seed=1, total_steps=30 * 512)
    resumed.load_state(payload)
    assert resumed.finished


@pytest.mark.parametrize(("terminates", "value"), [(False, 2.0), (True, 1.6)])
def test_critic_learns_that_a_time_limit_does_not_end_the_task(terminates, value):
    """All states look alike: v = 1 + v / 2, or v = 1 + 3/4 v / 2 if every fourth step is last."""
    settings = config(discount=0.5, trace_decay=0.0, learning_rate=0.05, num_epochs=4)
    trainer = Trainer.local(Clock(terminates=terminates), settings, seed=0, total_steps=20 * 128)
    while not trainer.finished:
        trainer.update()

    assert trainer.network.value(torch.ones(1, 1)).item() == pytest.approx(value, rel=0.01)


def test_first_gradient_step_sees_the_policy_that_acted():
    """With one minibatch nothing has moved yet: no divergence, nothing clipped, no loss."""
    settings = config(num_epochs=1, num_minibatches=1)
    trainer = Trainer.local(Bandit((3, 81), True), settings, seed=0, total_steps=2 * 512)

    for report in (trainer.update(), trainer.update()):
        assert report.approximate_kl == pytest.approx(0, abs=1e-6)
        assert report.clip_fraction == 0
        assert report.policy_loss == pytest.approx(0, abs=1e-5)  # advantages have mean 0


def test_report_averages_the_rollout_and_counts_its_steps():
    trainer = Trainer.local(Bandit((3, 5), False), config(), seed=0, total_steps=2048)

    reports = [trainer.update() for _ in range(4)]

    assert [report.step_count for report in reports] == [512, 1024, 1536, 2048]
    assert [report.rollout_steps for report in reports] == [512] * 4
    assert [report.update_index for report in reports] == [0, 1, 2, 3]
    shares = [report.learning_rate / 3e-3 for report in reports]
    assert shares == pytest.approx([1, 0.75, 0.5, 0.25])
    for report in reports:
        assert report.metrics["regret"] == pytest.approx(1 - report.mean_reward)
    with pytest.raises(RuntimeError, match="all 2048 steps are done"):
        trainer.update()


class Stragglers(LocalRollouts):
    """Worker w stops after w + 1 steps."""

    def collect(self, network: ActorCritic, num_steps: int) -> list[Rollout]:
        return [
            worker.collect(network, min(number + 1, num_steps))
            for number, worker in enumerate(self._workers)
        ]


def test_shorter_rollouts_count_as_what_they_are():
    """Of 32 environments each, 1 + 2 + 3 steps; means weigh every decision alike."""
    rollouts = Stragglers([Bandit((3, 5), False, seed) for seed in range(3)], seed=0)
    trainer = Trainer(rollouts, config(), seed=0, total_steps=1000)

    reports = [trainer.update() for _ in range(2)]

    assert [report.rollout_steps for report in reports] == [6 * 32] * 2
    assert trainer.step_count == 2 * 6 * 32
    assert trainer.steps_per_update == 3 * 32 * 16
    for report in reports:
        assert report.metrics["regret"] == pytest.approx(1 - report.mean_reward)


def test_recent_actions_are_those_of_the_last_rollouts_of_all_workers():
    """Worker w has done w + 1 steps of 32 environments; asking for more gives all, in order."""
    taken = []

    class Watched(Stragglers):
        def collect(self, network: ActorCritic, num_steps: int) -> list[Rollout]:
            rollouts = super().collect(network, num_steps)
            taken[:] = [row for part in rollouts for row in part.actions.flatten(0, 1).tolist()]
            return rollouts

    rollouts = Watched([Bandit((3, 5), False, seed) for seed in range(3)], seed=0)
    trainer = Trainer(rollouts, config(), seed=0, total_steps=1000)
    with pytest.raises(RuntimeError, match="PPO: update must be called first"):
        trainer.recent_actions(5)
    for _ in range(2):
        trainer.update()
        found = trainer.recent_actions(1000)
        assert found.tolist() == taken
        assert len(taken) == 6 * 32
        few = [taken[position] for position in evenly_spread(6 * 32, 5)]
        assert trainer.recent_actions(5).tolist() == few
        found[:] = -1
        assert trainer.recent_actions(1000).tolist() == taken
    with pytest.raises(ValueError, match="PPO: most must be a whole number from 1 to"):
        trainer.recent_actions(0)


def test_an_update_that_fails_leaves_no_recent_actions():
    """Half of a rollout has been overwritten by then."""

    class Failing(Bandit):
        num_steps = 0

        def rewards(self, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            self.num_steps += 1
            if self.num_steps > 16 + 8:
                raise ArithmeticError("bandit: out of money")
            return super().rewards(actions)

    trainer = Trainer.local(Failing((3, 5), False), config(), seed=0, total_steps=2048)
    trainer.update()
    assert len(trainer.recent_actions(7)) == 7
    with pytest.raises(ArithmeticError, match="out of money"):
        trainer.update()
    with pytest.raises(RuntimeError, match="update must be called first"):
        trainer.recent_actions(7)


def test_recent_actions_are_copies_and_end_with_a_state_that_is_loaded():
    """The next update overwrites the tensors of the rollouts."""
    trainer = trained(1)
    first = trainer.recent_actions(512)
    kept = first.copy()
    trainer.update()
    assert not np.array_equal(trainer.recent_actions(512), kept)
    np.testing.assert_array_equal(first, kept)

    trainer.load_state(trainer.state())
    with pytest.raises(RuntimeError, match="update must be called first"):
        trainer.recent_actions(1)


def test_fewer_decisions_than_minibatches_are_minibatches_of_one():
    class OneStep(LocalRollouts):
        def collect(self, network: ActorCritic, num_steps: int) -> list[Rollout]:
            return super().collect(network, 1)

    rollouts = OneStep([Bandit((3, 5), False)], seed=0)
    trainer = Trainer(rollouts, config(num_minibatches=100), seed=0, total_steps=1000)

    assert math.isfinite(trainer.update().policy_loss)
    assert trainer.step_count == 32


def test_observations_seen_by_all_workers_are_in_the_normaliser():
    environments = [Bandit((3, 5), False, seed) for seed in range(2)]
    first = np.concatenate([environment.reset() for environment in environments])
    rollouts = LocalRollouts([Bandit((3, 5), False, seed) for seed in range(2)], seed=0)
    trainer = Trainer(rollouts, config(num_steps=4), seed=0, total_steps=1000)

    assert trainer.network.normaliser.count == 64
    trainer.update()

    seen = [*first] + [row for env in environments for _ in range(4) for row in env.reset()]
    assert trainer.network.normaliser.count == len(seen) == 5 * 64
    np.testing.assert_allclose(trainer.network.normaliser.mean, np.mean(seen, axis=0), rtol=1e-6)


def test_gradients_that_are_not_finite_end_the_training():
    class Boundless(Bandit):
        def rewards(self, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            return np.full(len(actions), 1e30)  # finite, but not its square

    trainer = Trainer.local(Boundless((3, 5), False), config(), seed=0, total_steps=1000)
    with pytest.raises(RuntimeError, match=r"of update 0 must be finite, got norm (nan|inf)"):
        trainer.update()


def test_exceeded_target_kl_ends_the_update_after_one_epoch():
    """The weights are then those of a single epoch."""
    weights = []
    for settings in (config(target_kl=1e-12), config(num_epochs=1)):
        trainer = Trainer.local(Bandit((3, 5), False), settings, seed=0, total_steps=512)
        trainer.update()
        weights.append(torch.nn.utils.parameters_to_vector(trainer.network.parameters()))

    assert torch.equal(*weights)


def trained(num_updates: int) -> Trainer:
    trainer = Trainer.local(Bandit((3, 81), True), config(), seed=7, total_steps=4 * 512)
    for _ in range(num_updates):
        trainer.update()
    return trainer


def test_interrupted_training_continues_to_the_same_bytes(tmp_path: Path):
    for num_updates_before in (0, 1, 3):
        save_checkpoint(tmp_path / "middle.pt", trained(num_updates_before).state())
        resumed = Trainer.local(
            Bandit((3, 81), True, seed=99), config(), seed=7, total_steps=4 * 512
        )
        resumed.load_state(load_checkpoint(tmp_path / "middle.pt"))
        while not resumed.finished:
            resumed.update()
        save_checkpoint(tmp_path / f"resumed_{num_updates_before}.pt", resumed.state())
    save_checkpoint(tmp_path / "straight.pt", trained(4).state())

    straight = (tmp_path / "straight.pt").read_bytes()
    for num_updates_before in (0, 1, 3):
        assert (tmp_path / f"resumed_{num_updates_before}.pt").read_bytes() == straight


def test_training_neither_uses_nor_moves_the_global_generators():
    torch_before, numpy_before = torch.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002
    first = trained(1)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert repr(np.random.get_state()) == numpy_before  # noqa: NPY002

    with torch.random.fork_rng():
        torch.manual_seed(123)
        second = trained(1)
    parameters = zip(first.network.parameters(), second.network.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in parameters)


def test_state_is_a_snapshot_that_training_does_not_change():
    trainer = trained(1)
    state = trainer.state()
    other = trained(0)
    other.load_state(state)
    trainer.update()
    other.update()

    again = trained(0)
    again.load_state(state)
    again.update()
    assert torch.equal(*(t.network.parameter for t in (trainer, again)))


def test_foreign_state_is_refused_by_the_name_of_what_differs():
    state = trained(0).state()
    fresh = trained(0)

    with pytest.raises(CheckpointError, match=r"architecture must be .*5.*got .*81"):
        Trainer.local(Bandit((3, 5), True), config(), 7, 2048).load_state(state)
    with pytest.raises(CheckpointError, match=r"config must be .*got"):
        Trainer.local(Bandit((3, 81), True), config(num_epochs=1), 7, 2048).load_state(state)
    with pytest.raises(CheckpointError, match="seed must be 8, got 7"):
        Trainer.local(Bandit((3, 81), True), config(), 8, 2048).load_state(state)
    two_workers = LocalRollouts([Bandit((3, 81), True) for _ in range(2)], seed=7)
    with pytest.raises(CheckpointError, match="num_workers must be 2, got 1"):
        Trainer(two_workers, config(), 7, 2048).load_state(state)
    with pytest.raises(CheckpointError, match=r"got no \['optimiser'\]"):
        fresh.load_state({name: part for name, part in state.items() if name != "optimiser"})


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
        Trainer.local(Bandit((3, 5), True), config(num_minibatches=513), seed=0, total_steps=1)
    with pytest.raises(ValueError, match="total_steps must be at least 1, got 0"):
        Trainer.local(Bandit((3, 5), True), config(), seed=0, total_steps=0)
