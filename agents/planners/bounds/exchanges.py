"""Least time of a step that replicas spend on exchanging gradients or changes of parameters."""

from dataclasses import dataclass

import numpy as np

from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.planners.bounds.job_figures import JobFigures, Real
from des.costs.outer_state import OUTER_STATE_BYTES
from des.plan.synchronisation import Synchronisation


@dataclass(frozen=True, kw_only=True)
class ExchangeBound:
    """Exchange of ``num_replicas`` copies of a model, in a ring or along a tree.

    Every copy sends its values to another one once at least, and gets sums from one: a leaf of a
    tree no more than that, a member of a ring ``2 (R - 1) / R`` times as much.

    Attributes
    ----------
    layer_bytes
        Bytes of each layer that are summed up, (L,).
    period_steps
        Steps that one exchange of every layer is shared by.
    is_behind
        Whether further steps hide it.
    num_waits
        Exchanges of a period that nothing else hides, one after the other.
    state_bytes
        State of the outer optimiser for each parameter. [bytes]
    """

    num_replicas: int
    layer_bytes: Real
    period_steps: int
    is_behind: bool
    num_waits: int
    state_bytes: float

    def alone_s(self, figures: JobFigures, rate_bytes_per_s: Real) -> Real:
        """Time of a step behind its passes in domains that hold all layers, (K,). [s]

        ``rate_bytes_per_s`` is that of all links that a domain sends over, (K,).
        """
        if self.is_behind:
            return np.zeros(len(figures.model_s))
        hidden_s = (figures.input_gradient_s + figures.weight_gradient_s).sum(axis=1)
        first_s = _over(self.layer_bytes[0], figures.rate_bytes_per_s.sum(axis=1).max())
        sent_s = self._sent_s(rate_bytes_per_s) + least_latency_s(figures) - hidden_s
        late_s = self.latency_s(figures) * self.period_steps
        found: Real = np.maximum(sent_s, late_s + first_s) / self.period_steps
        return found

    def least_s(self, figures: JobFigures, rate_bytes_per_s: Real) -> Real:
        """Least time of a step in which all groups exchange over the links that leave them. [s]"""
        if not self.is_behind:
            return np.zeros(rate_bytes_per_s.shape)
        waits_s = self.num_waits * least_latency_s(figures)
        found: Real = (self._sent_s(rate_bytes_per_s) + waits_s) / self.period_steps
        return found

    def longer(self, figures: JobFigures, rates: Real, rate_bytes_per_s: Real) -> Real:
        """Exchange of groups that the last backward pass does not hide, in microbatches.

        Parameters
        ----------
        rates, rate_bytes_per_s
            Work in a second, and links that lead out, of each group.
        """
        if self.is_behind:
            return np.zeros(rates.shape)
        least = self.sent_share(figures)
        with np.errstate(divide="ignore", invalid="ignore"):
            exchanged = np.where(least > 0.0, least * rates / rate_bytes_per_s, 0.0)
        found: Real = exchanged - self.hidden_share(figures)
        return found

    def sent_share(self, figures: JobFigures) -> float:
        """Least bytes of a step that a member sends for each unit of its work in a microbatch."""
        sent = (self.layer_bytes / figures.layer_s).min(axis=1) / figures.rates
        return float(sent.min()) / self.period_steps

    def hidden_share(self, figures: JobFigures) -> float:
        """Most of a microbatch's time in which a step hides an exchange."""
        backward_s = figures.input_gradient_s + figures.weight_gradient_s
        return float((backward_s / figures.layer_s).max()) / self.period_steps

    def latency_s(self, figures: JobFigures) -> float:
        """Latency behind the last backward pass of every stage, over a period. [s]"""
        if self.is_behind:
            return 0.0
        return least_latency_s(figures) / self.period_steps

    def _sent_s(self, rate_bytes_per_s: Real) -> Real:
        """Time that links to one other copy are busy for all layers. [s]"""
        return _over(self.layer_bytes.sum(), rate_bytes_per_s)


def _over(num_bytes: float, rate_bytes_per_s: Real) -> Real:
    """Time of bytes at some rates; endless where no link leads out. [s]"""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Real = np.where(num_bytes > 0.0, num_bytes / rate_bytes_per_s, 0.0)
    return found


def exchange_bound(
    figures: JobFigures, space: PlanSpace, family: Family, num_replicas: int
) -> ExchangeBound:
    """Return the least exchange of a family's modes of synchronisation."""
    mode = min(space.modes(family), key=lambda one: one.bits_per_value)
    bits = mode.bits_per_value
    if mode.steps_between == 1:
        bits *= figures.gradient_bytes / 2.0
    num_bytes = figures.parameters * bits / 8.0
    is_behind, num_waits = mode.overlap_steps > 0, 0
    if is_behind:
        counted, num_waits = _counted(mode, len(num_bytes))
        num_bytes = num_bytes * counted
    return ExchangeBound(
        num_replicas=num_replicas,
        layer_bytes=num_bytes,
        period_steps=mode.steps_between,
        is_behind=is_behind,
        num_waits=num_waits,
        state_bytes=0.0 if mode.steps_between == 1 else OUTER_STATE_BYTES,
    )


def _counted(mode: Synchronisation, num_layers: int) -> tuple[Real, int]:
    """Layers, as 0 or 1, that a period waits for whatever it begins with, and their exchanges.

    Exchanges follow each other, and of those that start in the last `overlap_steps` steps of a
    period all may still be under way at its end, but at its begin at least the one before.
    """
    counted, due_steps = np.ones(num_layers), set()
    for fragment in mode.fragments(num_layers):
        if mode.steps_between - mode.overlap_steps < fragment.due_step < mode.steps_between:
            counted[list(fragment.layers)] = 0.0
        else:
            due_steps.add(fragment.due_step)
    return counted, len(due_steps)


def least_latency_s(figures: JobFigures) -> float:
    """Least latency of all links. [s]"""
    return float(figures.latency_s.min())
