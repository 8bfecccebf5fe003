"""Training with a curve and a checkpoint: an interrupted one is resumed to the same bytes."""

from dataclasses import replace

import pytest

from agents.cluster.queue_batch import QueueBatch
from agents.cluster.queue_task import draw_queue
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trainer import PPOTrainer
from des.base.command import UsageError
from scenarios.train.ppo_training import train_to_the_end
from scenarios.train.update_loop import UPDATES_PER_CHECKPOINT


class Interrupted(PPOTrainer):
    """A trainer that is interrupted after one more update than its first checkpoint has."""

    def update(self):
        if self.update_count > UPDATES_PER_CHECKPOINT:
            raise KeyboardInterrupt
        return super().update()


def learner(kind=PPOTrainer):
    """Two short queues, 12 updates."""
    batch = QueueBatch(2, 5, lambda seed: replace(draw_queue(seed), jobs=draw_queue(seed).jobs[:6]))
    config = PPOConfig(num_steps=2, num_minibatches=2, hidden_sizes=(4,))
    return kind.local(batch, config, 5, 48)


def files_in(folder):
    """Checkpoint and curve of a training in a new folder."""
    folder.mkdir(exist_ok=True)
    return folder / "queue.safetensors", folder / "curve.csv"


def test_an_interrupted_training_is_resumed_to_the_same_bytes(tmp_path, capsys):
    whole, parts = files_in(tmp_path / "a"), files_in(tmp_path / "b")
    train_to_the_end(learner(), *whole, resume=False)
    assert capsys.readouterr().err.count(" decisions, reward ") == 10
    with pytest.raises(KeyboardInterrupt):
        train_to_the_end(learner(Interrupted), *parts, resume=False, extra={"kind": "queue"})
    assert len(parts[1].read_text().splitlines()) == 2 + UPDATES_PER_CHECKPOINT
    train_to_the_end(learner(), *parts, resume=True)

    assert parts[1].read_bytes() == whole[1].read_bytes()
    assert parts[0].read_bytes() == whole[0].read_bytes()


def test_resuming_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"--resume: .*queue\.safetensors must be the checkpoint"):
        train_to_the_end(learner(), *files_in(tmp_path), resume=True)
