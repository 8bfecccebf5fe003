"""Least time of a step that replicas spend on exchanging gradients or changes of parameters."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from agents.decision.families import Family
from agents.decision.plan_space import PlanSpace
from agents.planners.bounds.due_exchanges import (
    DueExchange,
    ExchangeWay,
    due_exchanges,
    write_exchanges_s,
)
from agents.planners.bounds.job_figures import JobFigures, Real
from des.costs.outer_state import OUTER_STATE_BYTES
from des.job.transformer import OPTIMISER_BYTES, WEIGHT_BYTES
from des.plan.synchronisation import Synchronisation, agree_every_step


class Windows(NamedTuple):
    """Exchanges of a period after steps of which no two exchanges share one.

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
        due = due_exchanges(mode, tuple(layer_bytes.tolist()))
        chosen = window_steps(mode, sorted(due))
        num_bytes = sum(due[step].num_bytes for step in chosen)
        return cls(len(chosen), len(chosen) * mode.overlap_steps, float(num_bytes))


def window_steps(mode: Synchronisation, due_steps: Sequence[int]) -> list[int]:
    """Steps with an exchange after them of which no two share the steps that hide them."""
    found: list[int] = []
    free = 0
    for begin in due_steps if mode.overlap_steps > 0 else ():
        if free <= begin <= mode.steps_between - mode.overlap_steps:
            free = begin + mode.overlap_steps
            found.append(begin)
    return found


class Taken(NamedTuple):
    """Least time of the exchanges after the steps of a period, (...,) for some copies each. [s]

    ``waited_s`` is of all that are over within a period, ``alone_s`` of those that ``num_steps``
    of its ``period_steps`` are for.
    """

    waited_s: Real
    alone_s: Real
    num_steps: int
    period_steps: int

    @property
    def least_s(self) -> Real:
        """Least mean step. [s]"""
        return self.waited_s / self.period_steps

    def passes_s(self, time_s: float) -> Real:
        """Most time of a step without what it waits for exchanges, of a mean step. [s]"""
        others = self.period_steps - self.num_steps
        if others <= 0 or self.num_steps == 0:
            return np.full(self.alone_s.shape, time_s)
        found: Real = np.minimum(time_s, (self.period_steps * time_s - self.alone_s) / others)
        return found


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
        Bytes of new weights, all layers together, that a copy sends after its update.
    period_steps
        Steps that one exchange of every layer is shared by.
    is_behind
        Whether further steps hide it.
    waited
        Exchanges of a period that follow each other, all within it.
    num_windows, alone
        Steps that have exchanges to themselves, and these, see `Windows`.
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
    waited: tuple[DueExchange, ...]
    num_windows: int
    alone: tuple[DueExchange, ...]
    state_bytes: float
    updated_fraction: float

    def held(self, figures: JobFigures) -> JobFigures:
        """The job with what its copies hold and update."""
        return figures.with_state(self.state_bytes, self.updated_fraction)

    def alone_s(self, figures: JobFigures, rate_bytes_per_s: Real) -> Real:
        """Time of a step after its passes in domains that hold all layers, (K,). [s]

        ``rate_bytes_per_s`` is that of all links that a domain sends over, (K,).
        """
        if self.is_behind:
            return np.zeros(len(figures.model_s))
        hidden_s, first_s = self.alone_parts_s(figures)
        sent_s = self._sent_s(rate_bytes_per_s) + least_latency_s(figures) - hidden_s
        late_s = np.full(rate_bytes_per_s.shape, first_s)
        if self.gathered_bytes > 0.0:
            late_s += _over(self.gathered_bytes, rate_bytes_per_s)
        found: Real = np.maximum(sent_s, late_s) / self.period_steps
        return found

    def alone_parts_s(self, figures: JobFigures) -> tuple[Real, float]:
        """Backward pass of the whole model, (K,), and a period's time after the last one. [s]

        The latter is that of the first layer's values on all links of a domain.
        """
        hidden_s: Real = (figures.input_gradient_s + figures.weight_gradient_s).sum(axis=1)
        first_s = _over(self.first_bytes, figures.rate_bytes_per_s.sum(axis=1).max())
        latency_s = least_latency_s(figures)
        behind_s = latency_s if self.gathered_bytes > 0.0 else 0.0
        return hidden_s, float(latency_s + first_s + behind_s)

    def taken_s(self, figures: JobFigures, links_bytes_per_s: Real) -> Taken:
        """Least time of a period's exchanges after steps on the links of copies. [s]

        ``links_bytes_per_s`` lead from a copy to one other, the quickest first, (..., J).
        """
        nothing = np.zeros(links_bytes_per_s.shape[:-1])
        if not self.is_behind:
            return Taken(nothing, nothing, 0, self.period_steps)
        links = links_bytes_per_s.reshape(-1, links_bytes_per_s.shape[-1])
        waited_s, alone_s, own_s = np.zeros((3, len(links)))
        way, waited, alone = self.way(figures), Counter(self.waited), Counter(self.alone)
        for due in waited | alone:
            write_exchanges_s(links, due, way, own_s)
            waited_s += waited[due] * own_s if due in waited else 0.0
            alone_s += alone[due] * own_s if due in alone else 0.0
        waited_s, alone_s = (each.reshape(nothing.shape) for each in (waited_s, alone_s))
        return Taken(waited_s, alone_s, self.num_windows, self.period_steps)

    def way(self, figures: JobFigures) -> ExchangeWay:
        """Way in which the copies send what is due after steps."""
        return ExchangeWay(
            is_pair=self.num_replicas == 2,
            ring_factor=2.0 * (self.num_replicas - 1) / self.num_replicas,
            num_more=int(figures.is_mesh),
            latency_s=least_latency_s(figures),
        )

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

    @property
    def sent_bytes(self) -> float:
        """Least bytes of a period that a copy sends to another one."""
        if self.is_behind:
            return sum(one.num_bytes for one in self.waited)
        return float(self.layer_bytes.sum())

    def latency_s(self, figures: JobFigures) -> float:
        """Latency after the last backward pass of every stage, over a period. [s]"""
        if self.is_behind:
            return 0.0
        return least_latency_s(figures) / self.period_steps

    def _sent_s(self, rate_bytes_per_s: Real) -> Real:
        """Time that links to one other copy are busy for all layers. [s]"""
        return _over(self.sent_bytes, rate_bytes_per_s)


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
    due = due_exchanges(mode, tuple(num_bytes.tolist())) if mode.overlap_steps > 0 else {}
    alone = window_steps(mode, list(due))
    own = ExchangeBound(
        num_replicas=num_replicas,
        layer_bytes=num_bytes,
        first_bytes=float(num_bytes[0]),
        gathered_bytes=0.0,
        period_steps=mode.steps_between,
        is_behind=mode.overlap_steps > 0,
        waited=tuple(one for step, one in due.items() if not _is_late(mode, step)),
        num_windows=len(alone) * mode.overlap_steps,
        alone=tuple(due[step] for step in alone),
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


def _is_late(mode: Synchronisation, due_step: int) -> bool:
    """Whether an exchange may still be under way when its period ends.

    Exchanges follow each other, and of those that start in the last `overlap_steps` steps of a
    period all may still be under way at its end, but at its begin at least the one before.
    """
    return due_step > mode.steps_between - mode.overlap_steps


def least_latency_s(figures: JobFigures) -> float:
    """Least latency of all links. [s]"""
    return float(figures.latency_s.min())
