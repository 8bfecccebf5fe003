"""Sailor's formula where every domain is one device: its recursion over the layers of a list."""

from collections.abc import Sequence

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.sailor.sailor_lists import Order, border_bandwidths, one_way_messages_s
from des.base.arithmetic import held_bytes
from des.costs.layer_work import work_before
from des.costs.memory import model_state_bytes
from des.costs.stage_times import compute_rate_flops_per_s
from des.schedules import is_static, peaks_held, stage_orders
from des.schedules.check import Held


class WholeDomains:
    """Times of layers and messages of one problem, and what fits where.

    With ``is_overlapped`` messages hold up no stage, but none is quicker
    than the wires that it sends on.
    """

    def __init__(self, problem: PlanningProblem, *, is_overlapped: bool) -> None:
        self.problem, self._is_overlapped = problem, is_overlapped
        topology, sums = problem.topology, problem.workload.sums_before
        self.bandwidths = border_bandwidths(topology)
        self.num_later = problem.workload.num_microbatches - 1
        self.message_s, self._wire_s = one_way_messages_s(problem, self.bandwidths)
        self._layers_s = []  # of each domain, from the first layer of a row to before a column's
        for domain in topology.domains:
            passes = work_before(problem.workload, domain)
            work = np.array(passes.forward) + np.array(passes.backward)
            rate = compute_rate_flops_per_s(domain, problem.corrections)
            self._layers_s.append((work - work[:, np.newaxis]) / rate)
        self._activations, self._inputs, self._parameters = (
            np.subtract.outer(np.array(figures), np.array(figures)).T
            for figures in (sums.activation_bytes, sums.weight_input_bytes, sums.num_parameters)
        )
        self._fits: dict[tuple[int, int, int], np.ndarray] = {}
        self._known: dict[
            tuple[int, int | None, Order], tuple[np.ndarray, np.ndarray, np.ndarray]
        ] = {}

    def paced(
        self, times_s: np.ndarray, before: int | None, domain: int, behind: int | None
    ) -> np.ndarray:
        """Time from one microbatch to the next of stages of a domain between two others. [s]

        Activations to the domain behind hold it up, or gradients to the one before: the slower of
        both. None where there is no such domain.
        """
        targets = [target for target in (before, behind) if target is not None]
        if self._is_overlapped:
            wires_s = [float(self._wire_s[domain, target]) for target in targets]
            slowest: np.ndarray = np.maximum(times_s, max(wires_s, default=0.0))
            return slowest
        return times_s + max((float(self.message_s[domain, one]) for one in targets), default=0.0)

    def round_trip_s(self, domain: int, behind: int) -> float:
        """Time of a message to the domain behind and of one back. [s]"""
        return float(self.message_s[domain, behind] + self.message_s[behind, domain])

    def behind(
        self, size: int, before: int | None, order: Order
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slowest stage, sum and end of the first stage of the last stages of ``size``.

        By the layer with which these stages begin, shaped (L + 1,) each; ``before`` is the domain
        in front of them, None where they are the whole pipeline.
        """
        known = self._known.get((size, before, order))
        if known is not None:
            return known
        domain, behind = order[0], order[1] if len(order) > 1 else None
        times = self._layers_s[domain].copy()
        times[~self._does_fit(size, size - len(order), domain)] = np.inf
        paced = self.paced(times, before, domain, behind)
        if behind is None:
            straggler, total = paced[:, -1], times[:, -1]
            end = np.full(len(times), len(times) - 1)
        else:
            later_straggler, later_total, _ = self.behind(size, domain, order[1:])
            stragglers = np.maximum(paced, later_straggler)
            totals = times + self.round_trip_s(domain, behind) + later_total
            finite = np.where(np.isfinite(stragglers), stragglers, 0.0)  # else the total is not
            end = np.argmin(self.num_later * finite + totals, axis=1)
            rows = np.arange(len(times))
            straggler, total = stragglers[rows, end], totals[rows, end]
        self._known[size, before, order] = straggler, total, end
        return straggler, total, end

    def best_split(self, order: Order) -> tuple[float, list[int]] | None:
        """Estimate and layers of the stages over one list; None if nothing fits."""
        straggler, total, _ = self.behind(len(order), None, order)
        if not np.isfinite(total[0]):
            return None
        least_s = float(self.num_later * straggler[0] + total[0])
        counts, layer = [], 0
        for stage in range(len(order)):
            before = order[stage - 1] if stage else None
            end = int(self.behind(len(order), before, order[stage:])[2][layer])
            counts.append(end - layer)
            layer = end
        return least_s, counts

    def estimate_s(self, order: Order, counts: Sequence[int]) -> float:
        """Sailor's formula for that many layers in each domain of a list. [s]"""
        paces, total_s, first = [], 0.0, 0
        for before, domain, behind, count in zip(
            (None, *order[:-1]), order, (*order[1:], None), counts, strict=True
        ):
            time_s = self._layers_s[domain][first : first + 1, first + count]
            paces.append(float(self.paced(time_s, before, domain, behind)[0]))
            total_s += float(time_s[0])
            total_s += 0.0 if behind is None else self.round_trip_s(domain, behind)
            first += count
        return self.num_later * max(paces) + total_s

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
