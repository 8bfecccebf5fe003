"""Distributions of independent components: plain categories, and choices that are ordered.

All tensors have the batch as their last axis: so arithmetic runs along contiguous memory, however
few choices a component has. ``log_prob`` and ``entropy`` say what is meant and can be
differentiated as they are; ``log_prob_and_entropy`` is the same with the gradient written out,
for training, where it takes a third of the time.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

_LOCATION_MARGIN_FRACTION = 0.1
_SMALLEST_SCALE = 0.09
_SCALE_OF_DEVIATION = math.sqrt(3) / math.pi  # a logistic's scale over its standard deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominal:
    """A components of plain categories; ``logits`` (A, n, B), n the most choices of any.

    A choice that a component does not have has a logit so low that its probability is exactly 0,
    but finite: -1e9, say.
    """

    logits: Tensor

    def log_prob(self, choices: Tensor) -> Tensor:
        """Log-probability (B,) of choices (A, B), all components together."""
        return _choose(functional.log_softmax(self.logits, dim=1), choices).sum(dim=0)

    def entropy(self) -> Tensor:
        """Entropy (B,), the sum over components. [nats]"""
        log_probs = functional.log_softmax(self.logits, dim=1)
        return -(self.logits.softmax(dim=1) * log_probs).sum(dim=(0, 1))

    def log_prob_and_entropy(self, choices: Tensor) -> tuple[Tensor, Tensor]:
        """Both at once."""
        both: tuple[Tensor, Tensor] = _NominalTerms.apply(self.logits, choices)  # type: ignore[no-untyped-call]
        return both

    def mode(self) -> Tensor:
        """Most likely choices (A, B)."""
        return self.logits.argmax(dim=1)

    def sample(self, uniform: Tensor) -> Tensor:
        """Choices (A, B) by inversion of uniform numbers (A, B) within [0, 1)."""
        cumulative = self.logits.softmax(dim=1).cumsum(dim=1)
        total = cumulative[:, -1]  # not exactly 1
        return (cumulative <= (uniform * total).unsqueeze(1)).sum(dim=1)


def _choose(log_probs: Tensor, choices: Tensor) -> Tensor:
    """Entries (A, B) of ``log_probs`` (A, n, B) at choices (A, B)."""
    return log_probs.gather(1, choices.unsqueeze(1)).squeeze(1)


class _NominalTerms(torch.autograd.Function):
    """Log-probability and entropy (B,) from logits (A, n, B).

    With probabilities p and entropy H of one component,
    ``d log p_c / d l_k = [k = c] - p_k`` and ``d H / d l_k = -p_k (log p_k + H)``.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, choices: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = functional.log_softmax(logits, dim=1)
        probs = logits.softmax(dim=1)  # exp is slow where it underflows
        entropies = -(probs * log_probs).sum(dim=1)
        ctx.save_for_backward(log_probs, probs, entropies, choices)
        return _choose(log_probs, choices).sum(dim=0), entropies.sum(dim=0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_log_prob: Tensor, of_entropy: Tensor) -> tuple[Tensor, None]:
        log_probs, probs, entropies, choices = ctx.saved_tensors
        gradient = (log_probs + entropies.unsqueeze(1)).mul_(-of_entropy).sub_(of_log_prob)
        gradient.mul_(probs)
        gradient.scatter_add_(1, choices.unsqueeze(1), of_log_prob.expand_as(choices).unsqueeze(1))
        return gradient, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal:
    """A components of ordered choices 0..last: discretised logistic distributions [1]_.

    Choice k has the probability that the logistic distribution of ``location`` and ``scale``, both
    (A, B), gives to [k - 1/2, k + 1/2]; the first and the last choice have the tails as well.
    ``last`` (A, 1) is each component's last choice, as a float.

    References
    ----------
    .. [1] T. Salimans, A. Karpathy, X. Chen and D. P. Kingma, "PixelCNN++: Improving the PixelCNN
       with discretized logistic mixture likelihood and other modifications", ICLR 2017.
    """

    location: Tensor
    scale: Tensor
    last: Tensor

    @classmethod
    def from_outputs(cls, z: Tensor, w: Tensor, last: Tensor) -> "Ordinal":
        """Place and width from two numbers (A, B) each.

        - ``location = last * (1.2 * sigmoid(z) - 0.1)``: z = 0 is the middle, and the first and
          last choice are reached at z = -+2.4 already, not only at infinity;
        - ``scale = 0.09 + sqrt(3) / pi * n / 8 * exp(w)``, n choices: at w = 0 the deviation is
          about an eighth of the range; never below 0.09, where 99 % of the probability is on the
          nearest choice if the location is on it.
        """
        location, scale = _LocationAndScale.apply(z, w, last)  # type: ignore[no-untyped-call]
        return cls(location=location, scale=scale, last=last)

    def log_prob(self, choices: Tensor) -> Tensor:
        """Log-probability (B,) of choices (A, B), all components together."""
        return _log_interval(*_interval(self.location, self.scale, self.last, choices)).sum(dim=0)

    def entropy(self) -> Tensor:
        """Entropy (B,) of the logistic distributions before they are made discrete. [nats]

        ``log(scale) + 2`` each: close to that of the choices where the scale is above 1 and the
        location within the range, and at any scale a measure of how widely the policy looks.
        """
        return _logistic_entropy(self.scale)

    def log_prob_and_entropy(self, choices: Tensor) -> tuple[Tensor, Tensor]:
        """Both at once."""
        both: tuple[Tensor, Tensor] = _OrdinalTerms.apply(  # type: ignore[no-untyped-call]
            self.location, self.scale, self.last, choices
        )
        return both

    def mode(self) -> Tensor:
        """Choices (A, B) nearest to the locations."""
        return self._nearest(self.location)

    def sample(self, uniform: Tensor) -> Tensor:
        """Choices (A, B) by inversion of uniform numbers (A, B) within [0, 1)."""
        return self._nearest(self.location + self.scale * uniform.logit())

    def _nearest(self, places: Tensor) -> Tensor:
        return torch.minimum(places.round().clamp(min=0.0), self.last).long()


def ordinal_z(share: float) -> float:
    """Inverse of the location: z at which it is ``share`` of the way from first to last choice."""
    return math.log(share + _LOCATION_MARGIN_FRACTION) - math.log(
        1 - share + _LOCATION_MARGIN_FRACTION
    )


def _interval(
    location: Tensor, scale: Tensor, last: Tensor, choices: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Upper end, lower end and width, all (A, B), of what is rounded to choices, in scales."""
    precision = 1 / scale
    is_first, is_last = choices == 0, choices == last
    upper = ((choices + 0.5) - location) * precision
    lower = (upper - precision).masked_fill(is_first, -math.inf)
    return (
        upper.masked_fill(is_last, math.inf),
        lower,
        precision.masked_fill(is_first | is_last, math.inf),
    )


def _log_interval(upper: Tensor, lower: Tensor, width: Tensor) -> Tensor:
    """``log(sigmoid(upper) - sigmoid(lower))``, with width = upper - lower.

    The difference is ``sigmoid(upper) sigmoid(-lower) (1 - exp(-width))``, and the logarithm of
    each of these factors neither overflows nor cancels.
    """
    return (
        functional.logsigmoid(upper) + functional.logsigmoid(-lower) + (-torch.expm1(-width)).log()
    )


def _logistic_entropy(scale: Tensor) -> Tensor:
    return (scale.log() + 2).sum(dim=0)


class _OrdinalTerms(torch.autograd.Function):
    """Log-probability and entropy (B,) from locations and scales (A, B).

    With c = 1 / scale and x = choice - location, the upper end is at (x + 1/2) c and the lower one
    at (x - 1/2) c, in scales, and for the logarithm of the probability between them

    - ``d / d location = -c (sigmoid(-upper) - sigmoid(lower))``,
    - ``d / d c = (x + 1/2) sigmoid(-upper) - (x - 1/2) sigmoid(lower) + 1 / (exp(c) - 1)``,

    where terms of an end at infinity are 0.
    """

    @staticmethod
    def forward(
        ctx: Any, location: Tensor, scale: Tensor, last: Tensor, choices: Tensor
    ) -> tuple[Tensor, Tensor]:
        upper, lower, width = _interval(location, scale, last, choices)
        ctx.save_for_backward(location, scale, choices, upper, lower, width)
        return _log_interval(upper, lower, width).sum(dim=0), _logistic_entropy(scale)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, of_log_prob: Tensor, of_entropy: Tensor
    ) -> tuple[Tensor, Tensor, None, None]:
        location, scale, choices, upper, lower, width = ctx.saved_tensors
        above, below = (-upper).sigmoid_(), lower.sigmoid()
        distance = choices - location
        of_precision = (above - below).mul_(distance).add_((above + below).div_(2))
        of_precision.add_(width.expm1().reciprocal_())
        precision = 1 / scale
        of_location = (below - above).mul_(precision).mul_(of_log_prob)
        # The precision's derivative is -precision**2, that of the entropy the precision.
        of_scale = of_precision.mul_(precision).mul_(of_log_prob).sub_(of_entropy).mul_(-precision)
        return of_location, of_scale, None, None


class _LocationAndScale(torch.autograd.Function):
    """See `Ordinal.from_outputs`."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, w: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        share = z.sigmoid()
        spread = w.exp().mul_(_SCALE_OF_DEVIATION / 8 * (last + 1))
        ctx.save_for_backward(share, spread, last)
        margin = _LOCATION_MARGIN_FRACTION
        return last * ((1 + 2 * margin) * share - margin), spread + _SMALLEST_SCALE

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_location: Tensor, of_scale: Tensor) -> tuple[Tensor, Tensor, None]:
        share, spread, last = ctx.saved_tensors
        slope = (1 - share).mul_(share).mul_((1 + 2 * _LOCATION_MARGIN_FRACTION) * last)
        return of_location * slope, of_scale * spread, None
