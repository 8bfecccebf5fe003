"""Bound on pipelines of whole layers over a few domains, in every order."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.split_kernels import SplitFigures, holds_split

_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class WholeLayers:
    """Pipelines of a job over its domains, each stage of consecutive layers."""

    figures: JobFigures

    @cached_property
    def split_figures(self) -> SplitFigures:
        """Figures of the job, summed over layers."""
        figures = self.figures
        early_s = figures.forward_s + figures.input_gradient_s
        message_s, wire_s = figures.message_s, figures.wire_s
        quickest_s = early_s.min(axis=0)
        rest_s: Real = quickest_s.sum() - _before(quickest_s)
        return SplitFigures(
            passes_s=_before(np.array([figures.layer_s, figures.forward_s, early_s])),
            updates_s=_before(figures.update_s) + figures.overhead_s[:, None],
            state_bytes=_before(figures.layer_bytes - figures.kept_bytes),
            kept_bytes=_before(figures.kept_bytes),
            memory_bytes=figures.memory_bytes,
            borders_s=np.array([message_s, message_s.T, np.maximum(wire_s, wire_s.T)]),
            rest_s=rest_s * (1.0 - _ROUNDING),
            halved=figures.halved,
        )

    @cached_property
    def room(self) -> tuple[Real, Real]:
        """Arrays that `holds_split` writes its times into."""
        size, count = self.split_figures.updates_s.shape
        return np.empty((1 << size, size, count)), np.empty((1 << size, size, count))

    @cached_property
    def least_layer_s(self) -> Real:
        """Quickest layer of each domain, (K,). [s]"""
        least_s: Real = self.figures.layer_s.min(axis=1)
        return least_s

    def hold_pipeline(self, time_s: float, num_microbatches: int | None = None) -> bool:
        """Whether some pipeline of several stages may end by a time.

        ``num_microbatches`` is its share of the microbatches; None: all.
        """
        count = self.figures.num_microbatches if num_microbatches is None else num_microbatches
        found: bool = holds_split(
            time_s * (1.0 + _ROUNDING),
            count,
            self.split_figures,
            1.0 / (count * self.least_layer_s),
            *self.room,
        )
        return found


def _before(values: Real) -> Real:
    """Sums over all layers before each one, along the last axis."""
    start = np.zeros((*values.shape[:-1], 1))
    return np.concatenate([start, np.cumsum(values, axis=-1)], axis=-1)
