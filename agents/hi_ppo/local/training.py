"""Training of the local policy: PPO on one-step episodes, a case each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.hi_ppo.local.bound_plans import quick_times_s
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.draws import draw_case, draw_servers_case
from agents.hi_ppo.local.features import OPTION_FEATURES, WITHOUT_ESTIMATE, Observation, observe
from agents.hi_ppo.local.options import options_of
from agents.hi_ppo.local.policy import LocalArchitecture
from agents.hi_ppo.local.rules import largest_tensor
from agents.hi_ppo.local.training_policy import LocalPolicy
from agents.ppo.annealing import weighted_mean_annealing
from agents.ppo.policy_update import PolicyUpdate, ShuffledParts, TensorRows
from agents.ppo.ppo_loss import FIGURES, Objective
from agents.ppo.trained_policy import Part, Snapshot, tensors_of
from agents.ppo.update_config import COUNT, NON_NEGATIVE, FieldRange, UpdateConfig
from des.base.checks import require_seed

_LEAST_DEVIATION = 1e-6

MOST_OPTIONS = 160
"""Most options of a case that are learnt from: on one server there are 158 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTraining(UpdateConfig):
    """Training of the local policy.

    Attributes
    ----------
    num_cases, num_server_cases
        Random cases of one server, and of several, that episodes are taken from; an episode is a
        case and one option.
    num_updates, cases_per_update, group_size
        Updates in all, cases of an update, and options that are tried on each case. An advantage is
        an option's reward minus the mean of its group, in standard deviations of the group; in
        groups of one, the reward minus the value.
    num_minibatches
        Parts into which each epoch of an update divides the cases.
    sees_estimate
        Whether the policy sees `agents.hi_ppo.local.features.OF_ESTIMATE`; without, it has to
        learn how shapes and wires make times.
    """

    seed: int = 0
    num_cases: int = 2048
    num_server_cases: int = 1024
    num_updates: int = 150
    cases_per_update: int = 256
    group_size: int = 8
    num_minibatches: int = 2
    learning_rate: float = 2e-3
    value_coefficient: float = 0.5
    hidden_size: int = 64
    sees_estimate: bool = True

    owner: ClassVar[str] = "local training"
    ranges: ClassVar[dict[str, FieldRange]] = UpdateConfig.ranges | {
        "num_cases": COUNT,
        "num_server_cases": COUNT,
        "num_updates": COUNT,
        "cases_per_update": COUNT,
        "group_size": COUNT,
        "num_minibatches": COUNT,
        "value_coefficient": NON_NEGATIVE,
        "hidden_size": COUNT,
    }

    def check_together(self) -> None:
        """Refuse more minibatches than cases, and what is no seed."""
        require_seed(self.owner, "seed", self.seed)
        if self.num_minibatches > self.cases_per_update:
            raise ValueError(
                f"{self.owner}: num_minibatches must be at most cases_per_update "
                f"{self.cases_per_update}, got {self.num_minibatches}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReport:
    """One update: mean rewards of tried and of best options, and what `Objective` reports."""

    update: int
    mean_reward: float
    mean_best_reward: float
    policy_loss: float
    value_loss: float
    entropy: float
    approximate_kl: float
    clip_fraction: float


class CasePool(NamedTuple):
    """Cases in tensors: contexts (P, C), options (P, N, O), which of them are (P, N), rewards.

    A reward is the logarithm of how many times quicker an option, bound by `quick_binding`, is
    than the rule's plan.
    """

    contexts: Tensor
    options: Tensor
    is_option: Tensor
    rewards: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples(TensorRows):
    """Tried options of B cases, all (B, G); ``cases`` (B,) are their places in the pool."""

    cases: Tensor
    choices: Tensor
    old_log_probs: Tensor
    advantages: Tensor
    rewards: Tensor


def case_pool_of(cases: Sequence[LocalCase]) -> CasePool:
    """Compute features and rewards of options of cases, at most `MOST_OPTIONS` each."""
    seen = [_seen(case) for case in cases]
    most = max(len(rewards) for _, rewards in seen)
    num_options = [len(rewards) for _, rewards in seen]
    options = np.zeros((len(seen), most, seen[0][0].options.shape[1]), dtype=np.float32)
    rewards = np.zeros((len(seen), most), dtype=np.float32)
    for row, (observation, found) in enumerate(seen):
        options[row, : num_options[row]] = observation.options
        rewards[row, : num_options[row]] = found
    return CasePool(
        contexts=torch.from_numpy(np.stack([observation.context for observation, _ in seen])),
        options=torch.from_numpy(options),
        is_option=torch.arange(most) < torch.tensor(num_options).unsqueeze(1),
        rewards=torch.from_numpy(rewards),
    )


def _seen(case: LocalCase) -> tuple[Observation, np.ndarray]:
    """Observation of a case and the rewards of the options that `trained_on` keeps."""
    options = options_of(case)
    seen = observe(case, options)
    kept = trained_on(seen.estimate_s)
    times_s = quick_times_s(case, options, kept)
    rule_s = largest_tensor(case, options).seconds_per_sequence * case.job.num_sequences
    own = replace(seen, options=seen.options[kept], estimate_s=seen.estimate_s[kept])
    return own, np.asarray(np.log(rule_s / times_s))


def trained_on(estimate_s: np.ndarray) -> np.ndarray:
    """Rows of options to learn from: all, or half of least estimate and half spread over the rest.

    Examples
    --------
    >>> trained_on(np.arange(200.0, 0.0, -1.0)).size
    160
    """
    order = np.argsort(estimate_s, kind="stable")
    if len(order) <= MOST_OPTIONS:
        return np.arange(len(order))
    first = MOST_OPTIONS // 2
    spread = np.linspace(first, len(order) - 1, MOST_OPTIONS - first).astype(np.int64)
    return np.sort(order[np.concatenate((np.arange(first), spread))])


class LocalTrainer:
    """Trains a policy update by update; the same settings give the same policy to the last bit."""

    def __init__(self, training: LocalTraining) -> None:
        self.config, self.update = training, 0
        draws, first, tries = np.random.SeedSequence([training.seed, 0]).spawn(3)
        rng = np.random.default_rng(draws)
        cases = [draw_case(rng) for _ in range(training.num_cases)]
        cases += [draw_servers_case(rng) for _ in range(training.num_server_cases)]
        self._pool = case_pool_of(cases)
        architecture = LocalArchitecture(
            hidden_size=training.hidden_size,
            option_features=OPTION_FEATURES if training.sees_estimate else WITHOUT_ESTIMATE,
        )
        self.policy = LocalPolicy(architecture, _generator(first))
        self.policy.standardise(self._pool.contexts, self._pool.options[self._pool.is_option])
        self._generator = _generator(tries)
        optimiser = torch.optim.Adam(self.policy.parameters(), lr=training.learning_rate)
        self._policy_update = PolicyUpdate(
            config=training,
            optimiser=optimiser,
            loss=self._loss,
            figure_names=FIGURES,
            minibatches=ShuffledParts(
                num_minibatches=training.num_minibatches, generator=self._generator
            ),
            learning_rate_law=weighted_mean_annealing,
            entropy_law=weighted_mean_annealing,
        )
        self._snapshot = Snapshot(
            num_updates=training.num_updates,
            identity={"training": asdict(training)},
            parts={
                "generator": Part(self._generator.get_state, self._generator.set_state),
                "optimiser": Part(optimiser.state_dict, optimiser.load_state_dict),
            },
        )

    def step(self) -> LocalReport:
        """Make one update."""
        samples = self._tried()
        outcome = self._policy_update.descend(
            samples, index=self.update, progress=self.update / self.config.num_updates
        )
        self.update += 1
        pool, cases = self._pool, samples.cases
        rewards = pool.rewards[cases].masked_fill(~pool.is_option[cases], -math.inf)
        return LocalReport(
            update=self.update,
            mean_reward=float(samples.rewards.mean()),
            mean_best_reward=float(rewards.amax(dim=1).mean()),
            **outcome.figures,
        )

    def state(self) -> dict[str, object]:
        """Snapshot for `save_checkpoint`."""
        return {"parameters": dict(self.policy.state_dict()), **self._snapshot.state(self.update)}

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Before any update, continue a snapshot of an equal training; ``source`` is its file.

        Raises
        ------
        CheckpointError
            If it is none, or of another training.
        """
        self.update = self._snapshot.load(
            state,
            source=source,
            restore=lambda: self.policy.load_state_dict(tensors_of(state["parameters"])),
        )

    @torch.no_grad()
    def _tried(self) -> Samples:
        training, pool = self.config, self._pool
        cases = torch.randint(
            len(pool.contexts), (training.cases_per_update,), generator=self._generator
        )
        log_probs, values = self._log_probs(cases)
        choices = torch.multinomial(
            log_probs.exp(), training.group_size, replacement=True, generator=self._generator
        )
        rewards = pool.rewards[cases].gather(1, choices)
        if training.group_size == 1:
            advantages = rewards - values.unsqueeze(1)
        else:
            advantages = rewards - rewards.mean(dim=1, keepdim=True)
            deviations = advantages.square().mean(dim=1, keepdim=True).sqrt()
            advantages = advantages / deviations.clamp(min=_LEAST_DEVIATION)
        return Samples(
            cases=cases,
            choices=choices,
            old_log_probs=log_probs.gather(1, choices),
            advantages=advantages,
            rewards=rewards,
        )

    def _loss(self, some: Samples, entropy_coefficient: float) -> tuple[Tensor, Tensor]:
        training = self.config
        log_probs, values = self._log_probs(some.cases)
        probs = log_probs.exp()
        entropies = -(probs * log_probs.masked_fill(probs == 0.0, 0.0)).sum(dim=1)
        objective = Objective(
            clip_range=training.clip_range,
            value_coefficient=training.value_coefficient,
            entropy_coefficient=entropy_coefficient,
        )
        return objective.loss(
            log_probs.gather(1, some.choices).flatten(),
            entropies.repeat_interleave(training.group_size),
            values.repeat_interleave(training.group_size),
            old_log_probs=some.old_log_probs.flatten(),
            advantages=some.advantages.flatten(),
            returns=some.rewards.flatten(),
        )

    def _log_probs(self, cases: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of options of cases (B, N), minus infinity for padding; values (B,)."""
        pool = self._pool
        scores, values = self.policy(pool.contexts[cases], pool.options[cases])
        masked = scores.masked_fill(~pool.is_option[cases], -math.inf)
        return masked.log_softmax(dim=1), values


def _generator(sequence: np.random.SeedSequence) -> torch.Generator:
    seed = int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
    return torch.Generator().manual_seed(seed)
