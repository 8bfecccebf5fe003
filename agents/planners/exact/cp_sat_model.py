"""The order and split of a pipeline as a constraint model of whole numbers."""

import sys
from collections.abc import Sequence
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from agents.decision.problem import PlanningProblem
from des import Placement, UnreachableError
from des.base.arithmetic import held_bytes
from des.costs.layer_work import work_before
from des.costs.memory import model_state_bytes
from des.costs.message_times import quickest_message_s
from des.costs.stage_times import compute_rate_flops_per_s
from des.schedules import is_static, most_held, peaks_held, stage_orders
from des.schedules.check import Held

_UNITS = 100_000_000
"""Whole units of time in the iteration time that is known at the start."""

_SCALE = 100_000
"""Units of shares of the work."""


class SplitModel:
    """Stages counted from the output: slot 0 is the last stage, slots beyond the first are empty.

    All layers take as long as the least of them, but for what the last one takes longer.
    """

    def __init__(self, problem: PlanningProblem, known_s: float) -> None:
        self.problem, self.cp = problem, cp_model.CpModel()
        topology, workload = problem.topology, problem.workload
        passes = [work_before(workload, domain) for domain in topology.domains]
        forward = np.diff([one.forward for one in passes])
        work = forward + np.diff([one.backward for one in passes])
        self.num_slots = min(topology.num_domains, workload.num_layers)
        self.program = _program_of(problem, self.num_slots)
        rates = [
            compute_rate_flops_per_s(domain, problem.corrections) for domain in topology.domains
        ]
        if known_s == np.inf:  # longer than any placement takes whose stages run one by one
            known_s = workload.num_microbatches * float((work.sum(axis=1) / rates).max())
            known_s += 2 * workload.num_microbatches * self.num_slots * _longest_message_s(problem)
        self.unit_s = known_s / _UNITS
        if not self.unit_s >= sys.float_info.min:  # shares of it would lose their digits
            raise ValueError(
                f"cp_sat: an iteration must take at least {sys.float_info.min * _UNITS:.3g} s, "
                f"got {known_s!r} s"
            )
        backward = work - forward
        if self.program.has_halves:
            backward = np.diff([one.input_gradient for one in passes])
        self._shares = int(_SCALE * np.min(forward / work)), int(_SCALE * np.min(backward / work))
        least = work.min(axis=1)
        self._layer_units = [self.units(one / rate) for one, rate in zip(least, rates, strict=True)]
        self._last_units = [
            self.units(one / rate) for one, rate in zip(work[:, -1] - least, rates, strict=True)
        ]
        self.longest = self.cp.new_int_var(0, _UNITS, "")
        self._add_choices()
        self._add_bounds(self._add_borders())

    def units(self, time_s: float) -> int:
        """Whole units in a time; of one that is longer than all that is known, just too many."""
        return int(min(time_s / self.unit_s, _UNITS + 1.0))

    def _add_choices(self) -> None:
        """Add variables: the domain in each slot, and its number of layers."""
        cp, topology = self.cp, self.problem.topology
        num_layers = self.problem.workload.num_layers
        self.has = [[cp.new_bool_var("") for _ in topology.domains] for _ in range(self.num_slots)]
        self.is_used = [cp.new_bool_var("") for _ in range(self.num_slots)]
        self.layers: list[list[cp_model.IntVar]] = []
        for slot, row in enumerate(self.has):
            layer_bytes = _least_layer_bytes(self.problem, self.program.least_held[slot])
            self.layers.append([])
            for one, domain in zip(row, topology.domains, strict=True):
                most, room_bytes = num_layers, domain.memory_bytes * (1.0 + 1e-9)
                if layer_bytes * num_layers > room_bytes:
                    most = int(room_bytes // layer_bytes)
                count = cp.new_int_var(0, most, "")
                cp.add(count <= most * one)
                cp.add(count >= one)
                self.layers[slot].append(count)
            cp.add(sum(row) == self.is_used[slot])
        cp.add(self.is_used[0] == 1)
        for later, earlier in pairwise(self.is_used):
            cp.add_implication(earlier, later)
        for column in zip(*self.has, strict=True):
            cp.add_at_most_one(column)
        cp.add(sum(count for row in self.layers for count in row) == num_layers)

    def _add_borders(self) -> np.ndarray:
        """Add variables: the borders crossed; returns units of messages and wires, (borders, 2)."""
        cp, topology = self.cp, self.problem.topology
        self.crossed: list[list[cp_model.IntVar]] = []
        figures = {}
        for ends in permutations(range(topology.num_domains), 2):
            try:
                there, back = (
                    quickest_message_s(
                        topology,
                        *way,
                        self.problem.workload.message_bytes,
                        self.problem.corrections,
                    )
                    for way in (ends, ends[::-1])
                )
            except UnreachableError:
                continue
            figures[ends] = self.units(there[0] + back[0]), self.units(max(there[1], back[1]))
        for slot in range(self.num_slots - 1):
            crossed = {ends: cp.new_bool_var("") for ends in figures}
            for domain in range(topology.num_domains):
                leaving = [one for ends, one in crossed.items() if ends[0] == domain]
                coming = [one for ends, one in crossed.items() if ends[1] == domain]
                cp.add(sum(leaving) == self.has[slot + 1][domain])
                cp.add(sum(coming) <= self.has[slot][domain])
            self.crossed.append(list(crossed.values()))
        return np.array(list(figures.values()), dtype=np.int64).reshape(len(figures), 2)

    def _add_bounds(self, border_units: np.ndarray) -> None:
        """No iteration is shorter than any of the bounds of any slot.

        Times are vectors of weights of all variables that take time.
        """
        num_microbatches, program = self.problem.workload.num_microbatches, self.program
        forward, backward = self._shares
        kept = forward + backward if program.has_halves else _SCALE
        self._variables = [one for row in (*self.layers, *self.crossed, self.has[0]) for one in row]
        work = self._slots_of(self._layer_units, 0)
        work[0, -len(self._last_units) :] = self._last_units
        border = self._slots_of(border_units[:, 0], self.num_slots * len(self.has[0]))
        wire = self._slots_of(border_units[:, 1], self.num_slots * len(self.has[0]))
        everything = kept * work.sum(0) + _SCALE * border.sum(0)
        for slot in range(self.num_slots):
            behind = work[slot + 1 :].sum(0)
            outside = kept * behind + _SCALE * border[slot:].sum(0)
            self._add_bound(outside + num_microbatches * kept * work[slot])
            if program.has_halves:
                self._add_bound(forward * behind + num_microbatches * _SCALE * work[slot])
            if slot < self.num_slots - 1:
                self._add_bound(everything + (num_microbatches - 1) * _SCALE * wire[slot])
            trip = kept * work[: slot + 1].sum(0) + _SCALE * border[:slot].sum(0)
            paths = critical_paths(num_microbatches, program.most_held[slot], program.num_first)
            for trips, forwards, backwards in paths:
                passes = (forwards * forward + backwards * backward) * work[slot]
                self._add_bound(outside + trips * trip + passes, self.is_used[slot])
        self.cp.minimize(self.longest)

    def _slots_of(self, weights: Sequence[int] | np.ndarray, first: int) -> np.ndarray:
        """Vectors of weights of variables from ``first`` on, one row per slot."""
        vectors = np.zeros((self.num_slots, len(self._variables)), dtype=np.int64)
        for slot in range(self.num_slots if first == 0 else self.num_slots - 1):
            begin = first + slot * len(weights)
            vectors[slot, begin : begin + len(weights)] = weights
        return vectors

    def _add_bound(self, weights: np.ndarray, only_if: cp_model.IntVar | None = None) -> None:
        used = np.flatnonzero(weights).tolist()
        total = cp_model.LinearExpr.weighted_sum(
            [self._variables[each] for each in used], weights[used].tolist()
        )
        constraint = self.cp.add(_SCALE * self.longest >= total)
        if only_if is not None:
            constraint.only_enforce_if(only_if)


class Met(cp_model.CpSolverSolutionCallback):
    """Placements of the solutions that the solver meets, each better than the one before."""

    def __init__(self, model: SplitModel) -> None:
        super().__init__()
        self._model = model
        self.placements: list[Placement] = []

    def on_solution_callback(self) -> None:
        """Note a solution."""
        order, counts = [], []
        for slot in reversed(range(self._model.num_slots)):
            for domain, layers in enumerate(self._model.layers[slot]):
                if self.value(layers):
                    order.append(domain)
                    counts.append(self.value(layers))
        self.placements.append(Placement.contiguous(order, counts))


def critical_paths(
    num_microbatches: int, window: int, num_first: int
) -> list[tuple[int, int, int]]:
    """Passes that follow one another at a stage that holds at most ``window`` microbatches.

    Trips to the output and back, forwards and backwards; see the notes of `cp_sat_search`.
    """
    most = num_microbatches - 1
    behind = max(0, num_microbatches - window)
    paths = [(1, num_first - 1 + behind, most), (1, most, behind)]
    for waits in range(1, most // window + 1):
        left = most - waits * window
        paths.append((waits + 1, left, left))
    return paths


def _longest_message_s(problem: PlanningProblem) -> float:
    times_s = [0.0]
    for ends in permutations(range(problem.topology.num_domains), 2):
        try:
            message_bytes = problem.workload.message_bytes
            times_s.append(
                quickest_message_s(problem.topology, *ends, message_bytes, problem.corrections)[0]
            )
        except UnreachableError:
            continue
    return max(times_s)


class _Program(NamedTuple):
    """Schedule at each slot, whatever the number of stages.

    Most microbatches on the way to the output and back, numbers before their input gradient and
    between the halves at the moments that take memory, one list a number of stages; and how many
    forwards the last stage does before its first backward.
    """

    has_halves: bool
    most_held: list[int]
    least_held: list[list[tuple[Held, ...]]]
    num_first: int


def _program_of(problem: PlanningProblem, num_slots: int) -> _Program:
    num_microbatches = problem.workload.num_microbatches
    if not is_static(problem.schedule):
        one = (Held(0, 1, 0),), (Held(0, 0, 1),)
        return _Program(True, [num_microbatches] * num_slots, [list(one)] * num_slots, 1)
    most, least = [1] * num_slots, [list[tuple[Held, ...]]() for _ in range(num_slots)]
    num_first = num_microbatches
    for size in range(1, num_slots + 1):
        orders = stage_orders(problem.schedule, size, num_microbatches)
        held, peaks = most_held(orders, size), peaks_held(orders)
        for slot in range(size):
            stage = size - 1 - slot
            most[slot] = max(most[slot], held[stage])
            least[slot].append(tuple(one for (one,) in peaks[stage]))
        kinds = [operation.kind for operation in orders[-1]]
        first = next(each for each, kind in enumerate(kinds) if kind != "F")
        num_first = min(num_first, first)
    has_halves = any(operation.kind == "W" for operation in orders[0])
    return _Program(has_halves, most, least, num_first)


def _least_layer_bytes(problem: PlanningProblem, ways: Sequence[Sequence[Held]]) -> float:
    """Least memory of a layer at the fullest moment of a stage, by the best way. [bytes]"""
    workload = problem.workload
    whole, halved = min(workload.activation_bytes), min(workload.weight_input_bytes)
    held = min(
        max(held_bytes(one.num_whole, one.num_halved, whole, halved) for one in moments)
        for moments in ways
    )
    return model_state_bytes(workload, min(workload.num_parameters), None) + held
