"""Parts of the losses of policies that draw several proposals for each network."""

from torch import Tensor

from agents.ppo.ppo_loss import clipped_policy_loss

_LEAST_SPREAD = 0.01
_MOST_LOG_RATIO = 10.0


def log_ratio(now: Tensor, then: Tensor) -> Tensor:
    """Logarithm of how many times likelier a choice is than when it was drawn, within bounds."""
    return (now - then).clamp(-_MOST_LOG_RATIO, _MOST_LOG_RATIO)


def group_loss(
    log_probs: Tensor, old_log_probs: Tensor, rewards: Tensor, clip_range: float
) -> tuple[Tensor, Tensor]:
    """Clipped loss of proposals (B, N), and the share of those outside the range.

    The baseline of a proposal is the mean over the N of its network; its advantage is in spreads.

    Examples
    --------
    >>> import torch
    >>> same, rewards = torch.zeros(1, 2), torch.tensor([[1.0, 3.0]])
    >>> loss, outside = group_loss(same, same, rewards, 0.2)
    >>> bool(loss.abs() < 1e-6), float(outside)
    (True, 0.0)
    """
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    advantages = centred / (rewards.std(dim=1, keepdim=True) + _LEAST_SPREAD)
    ratio = log_ratio(log_probs, old_log_probs)
    clipped = ((ratio.exp() - 1.0).abs() > clip_range).float().mean()
    return clipped_policy_loss(ratio, advantages, clip_range), clipped


def judged_choice_loss(
    log_probs: Tensor,
    chosen: Tensor,
    old_log_probs: Tensor,
    rewards: Tensor,
    *,
    clip_range: float,
    least_spread: float,
) -> tuple[Tensor, Tensor]:
    """Clipped loss and entropy of choices (B, N) of which all K have rewards (B, N, K).

    The gain of a choice is its reward less what the policy expects over all of them.
    """
    own = chosen.unsqueeze(-1)
    expected = (log_probs.exp().detach() * rewards).sum(dim=-1)
    gain = rewards.gather(-1, own).squeeze(-1) - expected
    ratio = log_ratio(log_probs.gather(-1, own).squeeze(-1), old_log_probs)
    entropy = -(log_probs.exp() * log_probs).sum(dim=-1).mean()
    return clipped_policy_loss(ratio, gain / (gain.std() + least_spread), clip_range), entropy


def imitation_loss(known_log_probs: Tensor, found_rewards: Tensor, rewards: Tensor) -> Tensor:
    """Loss by which found proposals (B, 1) get likelier, where better than the drawn ones' mean."""
    is_better = found_rewards > rewards.mean(dim=1) + 1e-4
    return -(known_log_probs.squeeze(1) * is_better).mean()
