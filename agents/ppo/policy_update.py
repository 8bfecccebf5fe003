"""Update of a policy by proximal policy optimisation, whatever the policy decides."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor

from agents.ppo.annealing import AnnealingLaw, linear_annealing
from agents.ppo.update_config import UpdateConfig

TORCH_NORM_MARGIN = 1e-6
"""Margin that `torch.nn.utils.clip_grad_norm_` adds to a norm before it divides by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRows:
    """Tensors with as many rows each; row i of all of them belongs together."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def __getitem__(self, rows: Tensor) -> Self:
        return type(self)(
            **{f.name: getattr(self, f.name).index_select(0, rows) for f in fields(self)}
        )


Batch = TypeVar("Batch")
Rows = TypeVar("Rows", bound=TensorRows)
PolicyLoss = Callable[[Batch, float], tuple[Tensor, Tensor]]
"""Loss of a minibatch under a weight of the entropy, and its figures (F,), without gradient."""


def whole_batch(experience: Batch) -> tuple[Batch]:
    """Take all experience, in its order, as the only minibatch of an epoch."""
    return (experience,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledParts:
    """Minibatches of an epoch: all rows in a random order, in nearly equal parts.

    There are ``num_minibatches`` of them, or one a row where rows are fewer.
    """

    num_minibatches: int
    generator: torch.Generator

    def __call__(self, experience: Rows) -> Iterator[Rows]:
        """Draw the minibatches of the next epoch."""
        num_rows = len(experience)
        order = torch.randperm(num_rows, generator=self.generator, device=self.generator.device)
        for rows in order.tensor_split(min(self.num_minibatches, num_rows)):
            yield experience[rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOutcome:
    """Figures of an update; ``figures`` of the loss are means over minibatches, by name."""

    learning_rate: float
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyUpdate(Generic[Batch]):
    """Update step of one training: epochs of gradient descent on what a policy has experienced.

    Attributes
    ----------
    config
        Hyperparameters.
    optimiser
        Of the parameters that learn; only their gradients are measured and shortened.
    loss
        Loss of a minibatch under a weight of the entropy, and its figures (F,), without gradient.
    figure_names
        Names of these figures, F of them.
    minibatches
        Minibatches of the next epoch: `whole_batch`, `ShuffledParts`, or an order of the
        training's own. All random numbers of an update are drawn there.
    learning_rate_law, entropy_law
        Annealing of the learning rate and of the weight of the entropy.
    norm_margin
        Added to a gradient's norm before the gradient is divided by it.
    target_kl
        Mean ``approximate_kl`` of an epoch after which the update ends; None: no such end.
    """

    config: UpdateConfig
    optimiser: torch.optim.Optimizer
    loss: PolicyLoss[Batch]
    figure_names: Sequence[str]
    minibatches: Callable[[Batch], Iterable[Batch]]
    learning_rate_law: AnnealingLaw = linear_annealing
    entropy_law: AnnealingLaw = linear_annealing
    norm_margin: float = TORCH_NORM_MARGIN
    target_kl: float | None = None

    def descend(self, experience: Batch, *, index: int, progress: float) -> UpdateOutcome:
        """Make an update.

        Parameters
        ----------
        experience
            Experience that minibatches are taken from.
        index
            Number of the update, from 0, to be named in errors.
        progress
            Share of the training that lies behind.

        Raises
        ------
        RuntimeError
            If a gradient was not finite: the weights are then useless.
        """
        config = self.config
        learning_rate = self.learning_rate_law(
            config.learning_rate, config.final_learning_rate, progress
        )
        entropy_coefficient = self.entropy_law(
            config.entropy_coefficient, config.final_entropy_coefficient, progress
        )
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        measured: list[Tensor] = []
        for _ in range(config.num_epochs):
            epoch = [
                self._descend_once(batch, entropy_coefficient)
                for batch in self.minibatches(experience)
            ]
            measured += epoch
            if self.target_kl is not None and self._divergence(epoch) > self.target_kl:
                break
        *means, gradient_norm = torch.stack(measured).mean(dim=0).tolist()
        if not math.isfinite(gradient_norm):  # checked once per update: a GPU would have to wait
            raise RuntimeError(
                f"{config.owner}: gradients of update {index} must be finite, "
                f"got norm {gradient_norm} on average"
            )
        return UpdateOutcome(
            learning_rate=learning_rate, figures=dict(zip(self.figure_names, means, strict=True))
        )

    def _descend_once(self, batch: Batch, entropy_coefficient: float) -> Tensor:
        """One gradient step; the figures and the gradient's norm, (F + 1,)."""
        loss, figures = self.loss(batch, entropy_coefficient)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = self._clip_gradients()
        self.optimiser.step()
        return torch.cat((figures, norm.to(figures.dtype).unsqueeze(0)))

    def _clip_gradients(self) -> Tensor:
        """Shorten the gradient to the norm that is allowed; its norm before, ()."""
        gradients = [
            parameter.grad
            for group in self.optimiser.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        norm: Tensor = torch.linalg.vector_norm(torch.stack([each.norm() for each in gradients]))
        factor = (self.config.max_gradient_norm / (norm + self.norm_margin)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor)
        return norm

    def _divergence(self, epoch: Sequence[Tensor]) -> float:
        column = list(self.figure_names).index("approximate_kl")
        return float(torch.stack(list(epoch)).mean(dim=0)[column])
