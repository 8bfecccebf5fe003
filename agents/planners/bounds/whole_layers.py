"""Bound on pipelines of whole layers over a few domains, in every order."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.split_kernels import holds_split

_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class WholeLayers:
    """Pipelines of a job over its domains, each stage of consecutive layers."""

    figures: JobFigures

    @cached_property
    def passes_s(self) -> Real:
        """Sums before each layer, see `holds_split`, (3, K, L + 1). [s]"""
        figures = self.figures
        early_s = figures.forward_s + figures.input_gradient_s
        return _before(np.array([figures.layer_s, figures.forward_s, early_s]))

    @cached_property
    def updates_s(self) -> Real:
        """Sums of updates before each layer, the overhead first, (K, L + 1). [s]"""
        return _before(self.figures.update_s) + self.figures.overhead_s[:, None]

    @cached_property
    def borders_s(self) -> Real:
        """Messages down and up between two domains, and the slower of their wires, (3, K, K)."""
        message_s, wire_s = self.figures.message_s, self.figures.wire_s
        return np.array([message_s, message_s.T, np.maximum(wire_s, wire_s.T)])

    @cached_property
    def rest_s(self) -> Real:
        """Least time of the passes F and D from each layer on, (L + 1,). [s]"""
        figures = self.figures
        quickest_s = (figures.forward_s + figures.input_gradient_s).min(axis=0)
        sums: Real = quickest_s.sum() - _before(quickest_s)
        return sums * (1.0 - _ROUNDING)

    @cached_property
    def room(self) -> tuple[Real, Real]:
        """Arrays that `holds_split` writes its times into."""
        size, count = self.passes_s.shape[1:]
        return np.empty((1 << size, size, count)), np.empty((1 << size, size, count))

    @cached_property
    def sums(self) -> tuple[Real, Real]:
        """State, and activations of a microbatch, before each layer, (L + 1,) each. [bytes]"""
        figures = self.figures
        return _before(figures.layer_bytes - figures.kept_bytes), _before(figures.kept_bytes)

    @cached_property
    def least_layer_s(self) -> Real:
        """Quickest layer of each domain, (K,). [s]"""
        least_s: Real = self.figures.layer_s.min(axis=1)
        return least_s

    def hold_pipeline(self, time_s: float, num_microbatches: int | None = None) -> bool:
        """Whether some pipeline of several stages may end by a time.

        ``num_microbatches`` is its share of the microbatches; None: all.
        """
        figures = self.figures
        head_s, trip_s = self.room
        count = figures.num_microbatches if num_microbatches is None else num_microbatches
        state_bytes, kept_bytes = self.sums
        found: bool = holds_split(
            time_s * (1.0 + _ROUNDING),
            count,
            self.passes_s,
            self.updates_s,
            state_bytes,
            kept_bytes,
            figures.memory_bytes,
            self.borders_s,
            self.rest_s,
            1.0 / (count * self.least_layer_s),
            figures.halved,
            head_s,
            trip_s,
        )
        return found


def _before(values: Real) -> Real:
    """Sums over all layers before each one, along the last axis."""
    start = np.zeros((*values.shape[:-1], 1))
    return np.concatenate([start, np.cumsum(values, axis=-1)], axis=-1)
