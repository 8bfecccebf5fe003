"""Mean and deviation of observations, and their standardisation by these."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

_CONSTANT_DEVIATION_FRACTION = 1e-6  # a float32 resolves about 1e-7 of its own size
_LARGEST_NORMALISED = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationMoments:
    """``count`` observations: their mean (D,) and sum of squared deviations (D,), both float64."""

    count: int
    mean: Tensor
    sum_of_squares: Tensor

    @classmethod
    def of(cls, observations: Tensor) -> "ObservationMoments":
        """Moments of a batch (B, D)."""
        batch = observations.double()
        mean = batch.mean(dim=0)
        return cls(count=len(batch), mean=mean, sum_of_squares=(batch - mean).square_().sum(dim=0))

    @classmethod
    def of_equal_batches(cls, batches: Sequence["ObservationMoments"]) -> "ObservationMoments":
        """Moments of batches of one size together."""
        means = torch.stack([batch.mean for batch in batches])
        inner = torch.stack([batch.sum_of_squares for batch in batches]).sum(dim=0)
        between = cls.of(means)
        size = batches[0].count
        return cls(
            count=size * len(batches),
            mean=between.mean,
            sum_of_squares=inner + size * between.sum_of_squares,
        )


class RunningNormaliser(nn.Module):
    """Standardise every entry of an observation by the mean and deviation seen so far.

    Only ``merge`` learns; calling the module never does. An entry that has not varied (its
    deviation is below 1e-6 of its mean, which float32 cannot tell from noise) gives 0. Results
    saturate at +-10, so an entry that starts to move after a constant past cannot swamp the rest.
    """

    count: Tensor
    mean: Tensor
    sum_of_squares: Tensor
    offset: Tensor
    remainder: Tensor
    precision: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("sum_of_squares", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("offset", torch.zeros(size))  # the mean as the sum of two float32
        self.register_buffer("remainder", torch.zeros(size))
        self.register_buffer("precision", torch.zeros(size))  # 1 / deviation, or 0

    @property
    def variance(self) -> Tensor:
        """Population variance (D,) of everything seen; 0 before the first observation."""
        return self.sum_of_squares / self.count.clamp(min=1.0)

    @torch.no_grad()
    def merge(self, moments: ObservationMoments) -> None:
        """Add what has been seen elsewhere.

        References
        ----------
        .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample
           variance", The American Statistician 37(3), 1983.
        """
        total = self.count + moments.count
        shift = moments.mean.to(self.mean.device) - self.mean
        self.sum_of_squares += moments.sum_of_squares.to(self.mean.device)
        self.sum_of_squares += shift.square() * (self.count * moments.count / total)
        self.mean += shift * (moments.count / total)
        self.count.copy_(total)
        deviation = self.variance.sqrt()
        varies = deviation > _CONSTANT_DEVIATION_FRACTION * self.mean.abs()
        precision = torch.where(varies, 1.0 / torch.where(varies, deviation, 1.0), 0.0)
        self.offset.copy_(self.mean)
        self.remainder.copy_(self.mean - self.offset)
        self.precision.copy_(precision)

    def forward(self, observations: Tensor, out: Tensor | None = None) -> Tensor:
        """Standardised observations (B, D), float32, written to ``out`` if there is one."""
        centred = torch.sub(observations, self.offset, out=out).sub_(self.remainder)
        return centred.mul_(self.precision).clamp_(-_LARGEST_NORMALISED, _LARGEST_NORMALISED)
