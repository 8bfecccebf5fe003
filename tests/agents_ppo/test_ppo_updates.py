"""Updates of PPO: what they report, how rollouts are split, and when they end early."""

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from bandit import Bandit, config, trained

from agents.ppo.networks import ActorCritic
from agents.ppo.rollout import Rollout, evenly_spread
from agents.ppo.rollout_source import LocalRollouts
from agents.ppo.trainer import PPOTrainer


def test_report_averages_the_rollout_and_counts_its_steps():
    trainer = PPOTrainer.local(Bandit((3, 5), False), config(), seed=0, total_steps=2048)

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
    trainer = PPOTrainer(rollouts, config(), seed=0, total_steps=1000)

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
    trainer = PPOTrainer(rollouts, config(), seed=0, total_steps=1000)
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

    trainer = PPOTrainer.local(Failing((3, 5), False), config(), seed=0, total_steps=2048)
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
    trainer = PPOTrainer(rollouts, config(num_minibatches=100), seed=0, total_steps=1000)

    assert math.isfinite(trainer.update().policy_loss)
    assert trainer.step_count == 32


def test_observations_seen_by_all_workers_are_in_the_normaliser():
    environments = [Bandit((3, 5), False, seed) for seed in range(2)]
    first = np.concatenate([environment.reset() for environment in environments])
    rollouts = LocalRollouts([Bandit((3, 5), False, seed) for seed in range(2)], seed=0)
    trainer = PPOTrainer(rollouts, config(num_steps=4), seed=0, total_steps=1000)

    assert trainer.network.normaliser.count == 64
    trainer.update()

    seen = [*first] + [row for env in environments for _ in range(4) for row in env.reset()]
    assert trainer.network.normaliser.count == len(seen) == 5 * 64
    np.testing.assert_allclose(trainer.network.normaliser.mean, np.mean(seen, axis=0), rtol=1e-6)


def test_gradients_that_are_not_finite_end_the_training():
    class Boundless(Bandit):
        def rewards(self, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            return np.full(len(actions), 1e30)  # finite, but not its square

    trainer = PPOTrainer.local(Boundless((3, 5), False), config(), seed=0, total_steps=1000)
    with pytest.raises(RuntimeError, match=r"of update 0 must be finite, got norm (nan|inf)"):
        trainer.update()


def test_exceeded_target_kl_ends_the_update_after_one_epoch():
    """The weights are then those of a single epoch."""
    weights = []
    for settings in (config(target_kl=1e-12), config(num_epochs=1)):
        trainer = PPOTrainer.local(Bandit((3, 5), False), settings, seed=0, total_steps=512)
        trainer.update()
        weights.append(torch.nn.utils.parameters_to_vector(trainer.network.parameters()))

    assert torch.equal(*weights)
