"""Least time of a step that replicas spend on exchanging gradients or changes of parameters."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.planners.bounds.job_figures import JobFigures, Real
from des.costs.outer_state import OUTER_STATE_BYTES
from des.job.transformer import OPTIMISER_BYTES, WEIGHT_BYTES
from des.plan.synchronisation import Synchronisation, agree_every_step


class Windows(NamedTuple):
    """Exchanges of a period behind steps of which no two exchanges share one.

    What is due in a step must be over when that number of further steps ends:
    these take as long as it does at least. All other steps of the period take as long as one
    without an exchange.

    ``num_windows`` exchanges send ``num_bytes`` a copy behind ``num_steps`` of the period.
    """

    num_windows: int
    num_steps: int
    num_bytes: float

    @classmethod
    def of(cls, mode: Synchronisation, layer_bytes: Real) -> "Windows":
        """Choose the windows of a mode, the earliest first; one may begin with the period."""
        overlap, period = mode.overlap_steps, mode.steps_between
        if overlap == 0:
            return cls(0, 0, 0.0)
        due_bytes: dict[int, float] = {}
        for fragment in mode.fragments(len(layer_bytes)):
            begin = fragment.due_step % period
            own = float(layer_bytes[list(fragment.layers)].sum())
            due_bytes[begin] = due_bytes.get(begin, 0.0) + own
        free, num, num_bytes = 0, 0, 0.0
        for begin, own in sorted(due_bytes.items()):
            if free <= begin <= period - overlap:
                free, num, num_bytes = begin + overlap, num + 1, num_bytes + own
        return cls(num, num * overlap, num_bytes)


@dataclass(frozen=True, kw_only=True)
class ExchangeBound:
    """Exchange of ``num_replicas`` copies of a model, in a ring or along a tree.

    Every copy sends its values to another one once at least, and gets sums from one: a leaf of a
    tree no more than that, a member of a ring ``2 (R - 1) / R`` times as much. Copies that share
    the optimiser's state send ``(R - 1) / R`` of the gradients and, when they have updated their
    parts, as much of the weights.

    Attributes
    ----------
    layer_bytes
        Bytes of each layer that a copy sends, (L,).
    first_bytes
        Bytes of the first layer's gradients, which are made last.
    gathered_bytes
        Bytes of new weights, all layers together, that a copy sends behind its update.
    period_steps
        Steps that one exchange of every layer is shared by.
    is_behind
        Whether further steps hide it.
    num_waits
        Exchanges of a period that nothing else hides, one after the other.
    windows
        What of them has steps to itself, see `Windows`.
    state_bytes
        State for each parameter in addition to the job's; negative where copies share it. [bytes]
    updated_fraction
        Part of its parameters that a copy updates.
    """

    num_replicas: int
    layer_bytes: Real
    first_bytes: float
    gathered_bytes: float
    period_steps: int
    is_behind: bool
    num_waits: int
    windows: "Windows"
    state_bytes: float
    updated_fraction: float

    def held(self, figures: JobFigures) -> JobFigures:
        """The job with what its copies hold and update."""
        return figures.with_state(self.state_bytes, self.updated_fraction)

    def alone_s(self, figures: JobFigures, rate_bytes_per_s: Real) -> Real:
        """Time of a step behind its passes in domains that hold all layers, (K,). [s]

        ``rate_bytes_per_s`` is that of all links that a domain sends over, (K,).
        """
        if self.is_behind:
            return np.zeros(len(figures.model_s))
        hidden_s = (figures.input_gradient_s + figures.weight_gradient_s).sum(axis=1)
        first_s = _over(self.first_bytes, figures.rate_bytes_per_s.sum(axis=1).max())
        sent_s = self._sent_s(rate_bytes_per_s) + least_latency_s(figures) - hidden_s
        late_s = np.full(rate_bytes_per_s.shape, self.latency_s(figures) * self.period_steps)
        if self.gathered_bytes > 0.0:
            late_s += _over(self.gathered_bytes, rate_bytes_per_s) + least_latency_s(figures)
        found: Real = np.maximum(sent_s, late_s + first_s) / self.period_steps
        return found

    def least_s(self, figures: JobFigures, rate_bytes_per_s: Real) -> Real:
        """Least time of a step in which all groups exchange over the links that leave them. [s]"""
        if not self.is_behind:
            return np.zeros(rate_bytes_per_s.shape)
        waits_s = self.num_waits * least_latency_s(figures)
        found: Real = (self._sent_s(rate_bytes_per_s) + waits_s) / self.period_steps
        return found

    def passes_s(self, figures: JobFigures, time_s: float, rate_bytes_per_s: Real) -> Real:
        """Most time of a step without what it waits for exchanges behind other steps. [s]

        Parameters
        ----------
        time_s
            Mean step.
        rate_bytes_per_s
            Links that one copy sends to others over.
        """
        windows = self.windows
        if windows.num_windows == 0 or windows.num_steps >= self.period_steps:
            return np.full(rate_bytes_per_s.shape, time_s)
        taken_s = _over(windows.num_bytes, rate_bytes_per_s)
        taken_s += windows.num_windows * least_latency_s(figures)
        others = self.period_steps - windows.num_steps
        found: Real = np.minimum(time_s, (self.period_steps * time_s - taken_s) / others)
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


def exchange_bounds(
    figures: JobFigures, space: PlanSpace, family: Family, num_replicas: int, most_replicas: int
) -> tuple[ExchangeBound, ...]:
    """Return the least exchanges of a family's modes, of ``num_replicas`` copies or more.

    One for copies that each have an optimiser, and one for those that share it where they may.
    """
    mode = min(space.modes(family), key=lambda one: one.bits_per_value)
    bits = mode.bits_per_value
    if mode.steps_between == 1:
        bits *= figures.gradient_bytes / 2.0
    num_bytes = figures.parameters * bits / 8.0
    is_behind, num_waits, windows = mode.overlap_steps > 0, 0, Windows.of(mode, num_bytes)
    if is_behind:
        counted, num_waits = _counted(mode, len(num_bytes))
        num_bytes = num_bytes * counted
    own = ExchangeBound(
        num_replicas=num_replicas,
        layer_bytes=num_bytes,
        first_bytes=float(num_bytes[0]),
        gathered_bytes=0.0,
        period_steps=mode.steps_between,
        is_behind=is_behind,
        num_waits=num_waits,
        windows=windows,
        state_bytes=0.0 if mode.steps_between == 1 else OUTER_STATE_BYTES,
        updated_fraction=1.0,
    )
    if not agree_every_step(mode):
        return (own,)
    part = (num_replicas - 1) / num_replicas
    gathered = part * WEIGHT_BYTES * figures.parameters
    shared = replace(
        own,
        layer_bytes=part * num_bytes + gathered,
        first_bytes=part * float(num_bytes[0]),
        gathered_bytes=float(gathered.sum()),
        state_bytes=OPTIMISER_BYTES / most_replicas - OPTIMISER_BYTES,
        updated_fraction=1.0 / most_replicas,
    )
    return own, shared


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
