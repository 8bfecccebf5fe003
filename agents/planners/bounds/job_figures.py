"""Least times, bytes and memory of a job in microbatches of one size, on every domain."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agents.decision.whole_plan import WholeProblem
from des import UnreachableError, Workload
from des.costs.layer_work import work_before
from des.costs.memory import model_state_bytes
from des.costs.message_times import (
    corrected,
    direct_links,
    hop_goodput_bytes_per_s,
    quickest_message_s,
)
from des.costs.stage_times import compute_rate_flops_per_s
from des.costs.update_times import update_figures
from des.schedules import SCHEDULES, schedule_named

Real = npt.NDArray[np.float64]

WHOLE_BACKWARD = frozenset({"gpipe", "1f1b", "deep_1f1b"})
"""Schedules that do the backward pass of a microbatch in one piece."""


@dataclass(frozen=True, kw_only=True)
class JobFigures:
    """Figures of ``K`` domains and ``L`` layers that no plan is below.

    Attributes
    ----------
    forward_s, input_gradient_s, weight_gradient_s
        Time of each layer's passes over one microbatch, shaped (K, L). [s]
    overhead_s, update_s
        Time after the last gradient: of an iteration (K,), of each layer (K, L). [s]
    layer_bytes, parameters
        State and activations of one microbatch [bytes], and parameters, of each layer, (L,).
    kept_bytes
        Activations alone, (L,). [bytes]
    memory_bytes
        Memory of each domain, (K,). [bytes]
    message_s, wire_s
        Least time of a microbatch's message from row to column, ``inf`` where no path leads, and
        the part in which it keeps its slowest wire from others, (K, K). [s]
    rate_bytes_per_s, latency_s
        Physical links from row to column, 0 and ``inf`` where there is none, (K, K).
    is_mesh
        Whether every message takes a direct link.
    halved
        Whether weight gradients may come later than the input gradient of their microbatch.
    """

    num_microbatches: int
    forward_s: Real
    input_gradient_s: Real
    weight_gradient_s: Real
    overhead_s: Real
    update_s: Real
    layer_bytes: Real
    kept_bytes: Real
    parameters: Real
    memory_bytes: Real
    message_s: Real
    wire_s: Real
    rate_bytes_per_s: Real
    latency_s: Real
    is_mesh: bool
    halved: bool
    gradient_bytes: float

    @classmethod
    def of(cls, problem: WholeProblem, workload: Workload) -> "JobFigures":
        """Collect the figures of a problem's job in microbatches of one size."""
        topology, size = problem.topology, problem.topology.num_domains
        passes = np.array([_passes_s(problem, workload, domain) for domain in range(size)])
        updates = np.array(
            [
                update_figures(workload.gradient_bytes, one, None, problem.corrections)
                for one in topology.domains
            ]
        )
        parameters = np.array(workload.num_parameters)
        state = np.array([model_state_bytes(workload, each, None) for each in parameters])
        message_s, wire_s = _messages_s(problem, workload)
        rate, latency_s = _links(problem)
        names = {_base_name(name) for name in problem.space.schedules}
        return cls(
            num_microbatches=workload.num_microbatches,
            forward_s=passes[:, 0],
            input_gradient_s=passes[:, 1],
            weight_gradient_s=passes[:, 2],
            overhead_s=updates[:, 1],
            update_s=updates[:, :1] * parameters,
            layer_bytes=state + np.array(workload.activation_bytes),
            kept_bytes=np.array(workload.activation_bytes),
            parameters=parameters,
            memory_bytes=np.array([one.memory_bytes for one in topology.domains]),
            message_s=message_s,
            wire_s=wire_s,
            rate_bytes_per_s=rate,
            latency_s=latency_s,
            is_mesh=bool((rate > 0.0).sum() == size * (size - 1)),
            halved=not names <= WHOLE_BACKWARD,
            gradient_bytes=float(workload.gradient_bytes),
        )

    @cached_property
    def layer_s(self) -> Real:
        """Forward and backward pass of each layer, (K, L). [s]"""
        total: Real = self.forward_s + self.input_gradient_s + self.weight_gradient_s
        return total

    @cached_property
    def model_s(self) -> Real:
        """Forward and backward pass of the whole model, (K,). [s]"""
        total: Real = self.layer_s.sum(axis=1)
        return total

    @cached_property
    def reference_s(self) -> Real:
        """Layers in the time of the quickest domain: a unit of work all rates refer to, (L,)."""
        quickest: Real = self.layer_s[int(np.argmin(self.model_s))]
        return quickest

    @cached_property
    def rates(self) -> Real:
        """Most work of `reference_s` that each domain does in a second, (K,)."""
        most: Real = (self.reference_s / self.layer_s).max(axis=1)
        return most

    @cached_property
    def most_layers(self) -> Real:
        """Layers that the memory of each domain holds at most, the smallest ones, (K,)."""
        sizes = np.cumsum(np.sort(self.layer_bytes))
        counts: Real = np.searchsorted(sizes, self.memory_bytes, side="right").astype(float)
        return counts

    @property
    def work_s(self) -> float:
        """Time of a step with all domains busy from its begin to its end. [s]"""
        return float(self.num_microbatches * self.reference_s.sum() / self.rates.sum())

    def with_state(self, state_bytes: float, updated_fraction: float = 1.0) -> "JobFigures":
        """The same job with more or less state for every parameter, of which a part is updated."""
        return replace(
            self,
            layer_bytes=self.layer_bytes + state_bytes * self.parameters,
            update_s=self.update_s * updated_fraction,
        )

    def of_domains(self, domains: Sequence[int]) -> "JobFigures":
        """The same job on some of its domains alone."""
        own = np.array(domains)
        square = np.ix_(own, own)
        return replace(
            self,
            forward_s=self.forward_s[own],
            input_gradient_s=self.input_gradient_s[own],
            weight_gradient_s=self.weight_gradient_s[own],
            overhead_s=self.overhead_s[own],
            update_s=self.update_s[own],
            memory_bytes=self.memory_bytes[own],
            message_s=self.message_s[square],
            wire_s=self.wire_s[square],
            rate_bytes_per_s=self.rate_bytes_per_s[square],
            latency_s=self.latency_s[square],
        )

    def without_bytes(self) -> "JobFigures":
        """The same job on links that take no time."""
        free = np.zeros_like(self.message_s)
        apart = np.where(np.eye(len(free), dtype=np.bool_), 0.0, np.inf)
        return replace(
            self, message_s=free, wire_s=free, latency_s=free, rate_bytes_per_s=apart, is_mesh=True
        )

    def without_memory(self) -> "JobFigures":
        """The same job in domains of unlimited memory."""
        return replace(self, memory_bytes=np.full_like(self.memory_bytes, np.inf))


def _base_name(name: str) -> str:
    """Name of a schedule without its factor."""
    schedule, _ = schedule_named(name)
    return next(base for base, each in SCHEDULES.items() if each is schedule)


def _passes_s(problem: WholeProblem, workload: Workload, index: int) -> Real:
    """Forward pass, input gradient and weight gradient of each layer on a domain, (3, L). [s]"""
    domain = problem.topology.domains[index]
    rate = compute_rate_flops_per_s(domain, problem.corrections)
    work = work_before(workload, domain)
    sums = np.array([work.forward, work.input_gradient, work.weight_gradient])
    return np.maximum(np.diff(sums, axis=1), 0.0) / rate


def _messages_s(problem: WholeProblem, workload: Workload) -> tuple[Real, Real]:
    """Least time of a message between every two domains, and of its slowest wire, (K, K). [s]"""
    topology, size = problem.topology, problem.topology.num_domains
    num_bytes = workload.message_bytes / max(problem.space.compressions)
    whole_s, wire_s = np.zeros((2, size, size))
    if len(topology.links) == size * (size - 1):
        rate, latency_s = direct_links(topology, problem.corrections)
        np.divide(num_bytes, rate, out=wire_s, where=rate > 0.0)
        wire_s += problem.corrections.message_overhead_s * (rate > 0.0)
        return wire_s + latency_s, wire_s
    for source in range(size):
        for target in range(size):
            if source == target:
                continue
            try:
                found = quickest_message_s(topology, source, target, num_bytes, problem.corrections)
            except UnreachableError:
                found = (np.inf, np.inf)
            whole_s[source, target], wire_s[source, target] = found
    return whole_s, wire_s


def _links(problem: WholeProblem) -> tuple[Real, Real]:
    """Rates [bytes/s] and latencies [s] of physical links, (K, K)."""
    topology, size = problem.topology, problem.topology.num_domains
    rate, latency_s = np.zeros((size, size)), np.full((size, size), np.inf)
    for (source, target), index in topology.link_index.items():
        rate[source, target] = hop_goodput_bytes_per_s(topology, index, problem.corrections)
        latency_s[source, target] = corrected(topology.links[index], problem.corrections).latency_s
    return rate, latency_s
