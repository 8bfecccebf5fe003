"""Bounds over many domains, of which not all sets are looked at."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.pipeline_rules import PipelineRule, pipeline_rules, update_share
from agents.planners.bounds.set_kernels import capacity


@dataclass(frozen=True, kw_only=True)
class ManyDomains:
    """Domains of a job, each at its best neighbours."""

    figures: JobFigures

    @cached_property
    def rules(self) -> tuple[PipelineRule, ...]:
        """Rules that no pipeline breaks."""
        return pipeline_rules(self.figures)

    @cached_property
    def wire_s(self) -> Real:
        """Wire of a message between two domains, the slower way; ``inf`` to itself, (K, K). [s]"""
        both_s = np.maximum(self.figures.wire_s, self.figures.wire_s.T)
        np.fill_diagonal(both_s, np.inf)
        return both_s

    @cached_property
    def trip_s(self) -> Real:
        """Least time of a microbatch through a pipeline over a border and back, (K, K). [s]"""
        figures = self.figures
        quickest_s = (figures.forward_s + figures.input_gradient_s).min(axis=0)
        both_s: Real = figures.message_s + figures.message_s.T + quickest_s.sum()
        return both_s

    def hold_pipeline(self, time_s: float) -> bool:
        """Whether the bound lets a pipeline over several domains end by a time.

        Neighbours are joined by a link that carries all messages in time; stages are the quickest
        domains of those that such links hold together, and hops the least that leave them.
        """
        figures = self.figures
        left_s = time_s - float(figures.overhead_s.min())
        others = figures.num_microbatches - 1
        with np.errstate(invalid="ignore"):
            is_border = others * self.wire_s + self.trip_s <= left_s
        num_parts, part_of = connected_components(is_border, directed=False)
        parts = (np.flatnonzero(part_of == part) for part in range(num_parts))
        return any(self._holds_part(part, is_border, left_s) for part in parts if len(part) > 1)

    def _holds_part(
        self, part: npt.NDArray[np.intp], is_border: npt.NDArray[np.bool_], left_s: float
    ) -> bool:
        """Whether some of these domains may do the step as a pipeline."""
        num_layers = len(self.figures.layer_bytes)
        most = np.sort(np.minimum(self.figures.most_layers[part], num_layers))[::-1].cumsum()
        memory = np.sort(self.figures.memory_bytes[part])[::-1].cumsum()
        weight = self.figures.num_microbatches + update_share(self.figures)
        ways = []
        for rule in self.rules:
            hops_s = np.where(is_border[part], rule.hop_s[part], np.inf).min(axis=1)
            path_s = np.concatenate(([0.0], np.sort(hops_s)[:-1].cumsum()))
            rates = -np.sort(-rule.rates[part])
            ways.append((rates, path_s, rule))
        for count in range(2, min(len(part), num_layers) + 1):
            has_room = most[count - 1] >= num_layers
            has_room &= memory[count - 1] >= self.figures.layer_bytes.sum()
            if has_room and all(
                capacity(left_s, rates[:count], path_s[:count], weight, rule.share)
                >= weight * rule.work * (1.0 - 1e-9)
                for rates, path_s, rule in ways
            ):
                return True
        return False
