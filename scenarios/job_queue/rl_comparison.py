"""Trained orderings, rules, and an untrained and a random one on the same unseen queues."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from agents.cluster.learnt_ordering import LearntOrdering, trained_ordering_network
from agents.cluster.queue_batch import QueueBatch
from agents.cluster.queue_task import draw_queue, queue_policy
from agents.cluster.table import ORDERINGS, PolicySetting
from agents.cluster.weighted_ordering import CHOICES, HourlyWeights
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trained_policy import TrainedPolicy
from agents.ppo.trainer import PPOTrainer
from des.cluster.policy import Ordering, View
from des.cluster.running import run
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.compare.bootstrap import paired_bootstrap

RULES = ("fifo", "fifo_backfill", "sjf", "srtf", "srsf", "las", "tiresias", "gittins", "themis")
"""Rules for rigid jobs of one kind of GPU, without priorities or tenants."""

FIRST_QUEUE = 1000
"""Seed of the first unseen queue; those to train on have seeds from 2**20."""

_TRAINED, _UNTRAINED, _RANDOM = "ppo", "untrained", "random_weights"


@dataclass(slots=True, kw_only=True)
class RandomWeights(HourlyWeights):
    """Weights drawn every hour."""

    rng: np.random.Generator

    def next_choices(self, view: View) -> Sequence[int]:
        """Choices drawn uniformly."""
        choices: list[int] = self.rng.integers(CHOICES).tolist()
        return choices


def times_on_queues(checkpoints: Sequence[Path], num_queues: int) -> pd.DataFrame:
    """Mean time from arrival to end of each unseen queue under each policy: a row each. [s]"""
    networks = [trained_ordering_network(path) for path in checkpoints]
    batch = QueueBatch(1, 0)
    untrained = TrainedPolicy(network=PPOTrainer.local(batch, PPOConfig(), 0, 1).network)
    rows = []
    for queue in range(FIRST_QUEUE, FIRST_QUEUE + num_queues):
        sample = tuple(job.num_gpus * job.service_s for job in draw_queue(queue + 500_000).jobs)
        setting = PolicySetting(sample_gpu_s=sample)
        orderings: list[tuple[str, int, Ordering]] = [
            *((name, 0, ORDERINGS[name].make(setting)) for name in RULES),
            *((_TRAINED, seed, LearntOrdering(network=one)) for seed, one in enumerate(networks)),
            (_UNTRAINED, 0, LearntOrdering(network=untrained)),
            (_RANDOM, 0, RandomWeights(rng=np.random.default_rng(queue))),
        ]
        for name, seed, ordering in orderings:
            history = run(draw_queue(queue), queue_policy(ordering), queue)
            rows.append((queue, name, seed, history.mean_jct_s))
    return pd.DataFrame(rows, columns=["queue", "policy", "seed", "jct_mean_s"])


def comparison_lines(frame: pd.DataFrame) -> list[str]:
    """Mean time of each policy, and the trained one against the best rule, with intervals.

    The best rule is that of these queues, which favours it.
    """
    means = frame.groupby(["policy", "queue"], sort=False)["jct_mean_s"].mean().unstack("queue")
    times_s = {str(name): row.to_numpy() for name, row in means.iterrows()}
    best = min(RULES, key=lambda name: float(times_s[name].mean()))
    reference = times_s[best]
    lines = [f"{'policy':16}{'mean time [s]':>16}   against {best}"]
    for name in sorted(times_s, key=lambda each: float(times_s[each].mean())):
        own = times_s[name]
        found = paired_bootstrap(own, reference, list(means.columns), rng=np.random.default_rng(0))
        lines.append(
            f"{name:16}{own.mean():16.0f}   {found.mean:+.1%} [{found.low:+.1%}, {found.high:+.1%}]"
        )
    by_seed = frame[frame["policy"] == _TRAINED].groupby("seed")["jct_mean_s"].mean()
    ratios = by_seed.to_numpy() / reference.mean() - 1.0
    spread = mean_and_interval(ratios)
    seeds = ", ".join(f"{ratio:+.1%}" for ratio in ratios)
    lines.append(
        f"ratio of means by training seed: {seeds}"
        + (f"; {spread.mean:+.1%} ± {spread.half_width:.1%}" if len(ratios) > 1 else "")
    )
    return lines
