"""Bounds on replicas of one domain each."""

from dataclasses import dataclass

import numpy as np

from agents.planners.bounds.exchanges import ExchangeBound, Taken
from agents.planners.bounds.job_figures import JobFigures, Real


@dataclass(frozen=True, kw_only=True)
class AloneLimits:
    """Times of replicas of one domain each in addition to their passes, (..., K) each. [s]

    ``update_s`` (K,) belongs to every step, ``late_s`` to the mean one.
    """

    taken: Taken
    update_s: Real
    late_s: Real
    least_s: Real

    @classmethod
    def of(
        cls,
        figures: JobFigures,
        exchange: ExchangeBound,
        rate_bytes_per_s: Real,
        both_bytes_per_s: Real | None = None,
    ) -> "AloneLimits":
        """Collect the limits of domains that hold all layers; ``inf`` where they do not fit.

        ``rate_bytes_per_s`` is that of all links that a domain sends over, (..., K), and
        ``both_bytes_per_s`` the quicker of two ways, for exchanges after steps; None: the same.
        """
        both = rate_bytes_per_s if both_bytes_per_s is None else both_bytes_per_s
        taken = exchange.taken_s(figures, both[..., np.newaxis])
        held = exchange.held(figures)
        update_s = figures.overhead_s + held.update_s.sum(axis=1)
        may = held.most_layers >= len(figures.layer_bytes)
        return cls(
            taken=taken,
            update_s=update_s,
            late_s=update_s + exchange.alone_s(figures, rate_bytes_per_s),
            least_s=np.where(may, taken.least_s, np.inf),
        )

    def counts(self, figures: JobFigures, time_s: float) -> Real:
        """Most whole microbatches of each domain in a time, (..., K)."""
        left_s = self.taken.passes_s(time_s) - self.late_s
        counts = np.floor(left_s / figures.model_s * (1.0 + 1e-9) + 1e-9)
        most = np.clip(counts, 0.0, figures.num_microbatches)
        found: Real = np.where(self.least_s <= time_s, most, 0.0)
        return found
