"""Sailor's formula where every domain is one device: its recursion over the layers of a list."""

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.sailor.sailor_lists import Order, border_bandwidths, round_trips_s
from des.base.arithmetic import held_bytes
from des.costs.layer_work import work_before
from des.costs.memory import model_state_bytes
from des.costs.stage_times import compute_rate_flops_per_s
from des.schedules import is_static, peaks_held, stage_orders
from des.schedules.check import Held


class WholeDomains:
    """Times of layers and messages of one problem, and what fits where.

    With ``is_overlapped`` messages hold up no stage, but none is quicker than the wire behind it.
    """

    def __init__(self, problem: PlanningProblem, *, is_overlapped: bool) -> None:
        self.problem, self._is_overlapped = problem, is_overlapped
        topology, sums = problem.topology, problem.workload.sums_before
        self.bandwidths = border_bandwidths(topology)
        self.num_later = problem.workload.num_microbatches - 1
        self.message_s, self._wire_s = round_trips_s(problem, self.bandwidths)
        self._work = []  # of each domain, from the first layer of a row to that of a column
        for domain in topology.domains:
            passes = work_before(problem.workload, domain)
            work = np.array(passes.forward) + np.array(passes.backward)
            self._work.append(work - work[:, np.newaxis])
        self._rates = [
            compute_rate_flops_per_s(domain, problem.corrections) for domain in topology.domains
        ]
        self._activations, self._inputs, self._parameters = (
            np.subtract.outer(np.array(figures), np.array(figures)).T
            for figures in (sums.activation_bytes, sums.weight_input_bytes, sums.num_parameters)
        )
        self._fits: dict[tuple[int, int, int], np.ndarray] = {}
        self._known: dict[tuple[int, Order], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def layers_s(self, domain: int) -> np.ndarray:
        """Forward and backward of the layers from a row's to before a column's. [s]"""
        times: np.ndarray = self._work[domain] / self._rates[domain]
        return times

    def paced(self, times_s: np.ndarray, domain: int, following: int) -> np.ndarray:
        """Time from one microbatch to the next of stages with a border behind them. [s]"""
        paced_s: np.ndarray = times_s + self.message_s[domain, following]
        if self._is_overlapped:
            paced_s = np.maximum(times_s, self._wire_s[domain, following])
        return paced_s

    def behind(self, size: int, order: Order) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slowest stage, sum and end of the first stage of the last stages of ``size``.

        By the layer with which these stages begin, shaped (L + 1,) each.
        """
        known = self._known.get((size, order))
        if known is not None:
            return known
        domain = order[0]
        times = self.layers_s(domain).copy()
        times[~self._does_fit(size, size - len(order), domain)] = np.inf
        if len(order) == 1:
            straggler = total = times[:, -1]
            end = np.full(len(times), len(times) - 1)
        else:
            later_straggler, later_total, _ = self.behind(size, order[1:])
            stragglers = np.maximum(self.paced(times, *order[:2]), later_straggler)
            totals = times + self.message_s[order[0], order[1]] + later_total
            finite = np.where(np.isfinite(stragglers), stragglers, 0.0)  # else the total is not
            end = np.argmin(self.num_later * finite + totals, axis=1)
            rows = np.arange(len(times))
            straggler, total = stragglers[rows, end], totals[rows, end]
        self._known[size, order] = straggler, total, end
        return straggler, total, end

    def best_split(self, order: Order) -> tuple[float, list[int]] | None:
        """Estimate and layers of the stages over one list; None if nothing fits."""
        straggler, total, _ = self.behind(len(order), order)
        if not np.isfinite(total[0]):
            return None
        least_s = float(self.num_later * straggler[0] + total[0])
        counts, layer = [], 0
        for stage in range(len(order)):
            end = int(self.behind(len(order), order[stage:])[2][layer])
            counts.append(end - layer)
            layer = end
        return least_s, counts

    def _does_fit(self, size: int, stage: int, domain: int) -> np.ndarray:
        """Mask of the runs of layers that a stage can hold under any schedule, (L + 1, L + 1)."""
        key = size, stage, domain
        if key not in self._fits:
            state = model_state_bytes(self.problem.workload, 1.0, None) * self._parameters
            held = np.full_like(state, np.inf)
            for name in self.problem.choices:
                peak = np.zeros_like(state)
                for one in self._moments(name, size, stage):
                    moment = held_bytes(
                        one.num_whole, one.num_halved, self._activations, self._inputs
                    )
                    peak = np.maximum(peak, moment)
                held = np.minimum(held, peak)
            capacity = self.problem.topology.domains[domain].memory_bytes
            self._fits[key] = np.triu(state + held <= capacity, 1)  # a layer at least
        return self._fits[key]

    def _moments(self, name: str, size: int, stage: int) -> list[Held]:
        """Activations that a stage holds at its peaks; one microbatch if they depend on times."""
        if not is_static(name):
            return [Held(stage, 1, 0)]
        orders = stage_orders(name, size, self.problem.workload.num_microbatches)
        return [one for (one,) in peaks_held(orders)[stage]]
