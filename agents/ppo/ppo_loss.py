"""Loss of PPO."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

FIGURES = ("policy_loss", "value_loss", "entropy", "approximate_kl", "clip_fraction")
"""Figures that `Objective.loss` reports besides the loss, in this order."""


def clipped_policy_loss(log_ratio: Tensor, advantages: Tensor, clip_range: float) -> Tensor:
    """Pessimistic surrogate: no gain from moving a probability by more than the clip range.

    Equation 7 of Schulman et al. (arXiv:1707.06347), negated.

    Examples
    --------
    >>> float(clipped_policy_loss(torch.tensor([2.0]).log(), torch.tensor([10.0]), 0.5))
    -15.0
    """
    gains, held_gains = gains_of(log_ratio.exp(), advantages, clip_range)
    return -torch.minimum(gains, held_gains).mean()


def gains_of(ratio: Tensor, advantages: Tensor, clip_range: float) -> tuple[Tensor, Tensor]:
    """Surrogate gains of the probability ratios, plain and clipped."""
    return ratio * advantages, ratio.clamp(1 - clip_range, 1 + clip_range) * advantages


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Weights of the parts of the loss, and how far a probability may move for a gain."""

    clip_range: float
    value_coefficient: float
    entropy_coefficient: float

    def loss(
        self,
        log_probs: Tensor,
        entropies: Tensor,
        values: Tensor,
        *,
        old_log_probs: Tensor,
        advantages: Tensor,
        returns: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Loss of B decisions, all arguments (B,), and ``FIGURES`` (5,), which have no gradient.

        The loss adds up ``clipped_policy_loss``, half the mean squared error of the values and the
        mean entropy, which is wanted. The divergence from the old policy is estimated by the mean
        of r - 1 - log r >= 0 over ratios r; the clip fraction is that of ratios outside the range.
        """
        both: tuple[Tensor, Tensor] = _Loss.apply(  # type: ignore[no-untyped-call]
            self, log_probs, entropies, values, old_log_probs, advantages, returns
        )
        return both


class _Loss(torch.autograd.Function):
    """Loss and figures, with the gradient at once: a third of the operations of recording it."""

    @staticmethod
    def forward(  # noqa: PLR0917 - as torch calls it
        ctx: Any,
        objective: Objective,
        log_probs: Tensor,
        entropies: Tensor,
        values: Tensor,
        old_log_probs: Tensor,
        advantages: Tensor,
        returns: Tensor,
    ) -> tuple[Tensor, Tensor]:
        log_ratio = log_probs - old_log_probs
        excess = log_ratio.expm1()  # ratio - 1
        gains, held_gains = gains_of(excess + 1, advantages, objective.clip_range)
        errors = values - returns
        figures = torch.stack(
            (
                -torch.minimum(gains, held_gains).mean(),
                errors.square().mean() / 2,
                entropies.mean(),
                (excess - log_ratio).mean(),
                (excess.abs() > objective.clip_range).float().mean(),
            )
        )
        loss = (
            figures[0]
            + objective.value_coefficient * figures[1]
            - objective.entropy_coefficient * figures[2]
        )
        # Where the clipped gain is the smaller one, it does not depend on the ratio.
        ctx.save_for_backward(gains.mul_(gains <= held_gains), errors)
        ctx.objective = objective
        ctx.mark_non_differentiable(figures)
        return loss, figures

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        unheld_gains, errors = ctx.saved_tensors
        of_mean = of_loss / len(errors)
        return (
            None,
            unheld_gains * -of_mean,
            (of_mean * -ctx.objective.entropy_coefficient).expand_as(errors),
            errors * (of_mean * ctx.objective.value_coefficient),
            None,
            None,
            None,
        )
