"""Lower bounds on the iteration time of contiguous placements, whatever the queues do."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from agents.decision.problem import PlanningProblem
from des.costs.layer_work import work_before
from des.costs.message_times import quickest_message_s
from des.costs.stage_times import compute_rate_flops_per_s
from des.schedules import is_static, most_held, stage_orders

_ROUNDING = 1e-9
"""Relative slack against the rounding of sums."""


def lower_bounds_s(
    problem: PlanningProblem, order: Sequence[int], num_layers: np.ndarray
) -> np.ndarray:
    """Bound the iteration time of every split over the domains of one order. [s]

    Parameters
    ----------
    order
        Domains from the input to the output, each at most once.
    num_layers
        Layers of each stage, shaped (ways, stages).

    Returns
    -------
    np.ndarray
        Shaped (ways,): the largest of three bounds over the stages ``s``.

    Notes
    -----
    With ``head`` the time until stage ``s`` can start, ``tail`` the time from its last backward to
    the end of the iteration and ``trip`` the time of one microbatch from its forward at ``s`` to
    the end of its backward there:

    - work: ``head + m (F + B) + tail``, or, where ``W`` may come after the last ``D``, the larger
      of ``head + m (F + D) + tail`` and ``head + m (F + D + W)``;
    - window: at most ``w`` microbatches are held at ``s`` and passes are in order, so forward
      ``j + w`` starts after backward ``j`` ends: ``head + floor((m-1)/w) trip + ((m-1) mod w) F +
      trip + tail``;
    - wire: ``m`` messages leave the slowest wire behind ``s`` one after another, then the last one
      makes the rest of its trip; forwards and backwards alike.
    """
    num_microbatches = problem.workload.num_microbatches
    known = is_static(problem.schedule)
    orders = stage_orders(problem.schedule, len(order), num_microbatches) if known else ()
    halves = not known or any(operation.kind == "W" for operation in orders[0])
    forward_s, backward_s, weight_gradient_s = _stage_times_s(problem, order, num_layers, halves)
    down, down_wire = _messages_s(problem, order)
    up, up_wire = _messages_s(problem, order, upwards=True)
    head = _exclusive_cumsum(forward_s) + _exclusive_cumsum(down)
    tail = _exclusive_cumsum(backward_s) + _exclusive_cumsum(up)
    # From the start of a stage's forward to the end of its backward, through all later stages.
    trip = _inclusive_from_end(forward_s + backward_s) + _inclusive_from_end(down + up)

    work = head + num_microbatches * (forward_s + backward_s)
    work = np.maximum(work + tail, work + num_microbatches * weight_gradient_s)
    # An order that depends on the times may hold all microbatches, for all we know here.
    window = np.array(most_held(orders, len(order)) if known else [num_microbatches] * len(order))
    rounds, rest = np.divmod(num_microbatches - 1, window)
    held = head + rounds * trip + rest * forward_s + trip + tail
    waiting = (num_microbatches - 1) * np.maximum(down_wire, up_wire)
    wire = head + trip + tail + waiting
    bounds: np.ndarray = np.maximum(np.maximum(work, held), wire).max(axis=1)
    return bounds * (1.0 - _ROUNDING)


def _stage_times_s(
    problem: PlanningProblem, order: Sequence[int], num_layers: np.ndarray, halves: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forward, backward and put-off time of every stage for one microbatch, (ways, stages) each.

    Where the backward pass is done in halves, its second half is put off.
    """
    rates = np.array(
        [
            compute_rate_flops_per_s(problem.topology.domains[domain], problem.corrections)
            for domain in order
        ]
    )
    ends = np.cumsum(num_layers, axis=1)
    starts = ends - num_layers
    work = [work_before(problem.workload, problem.topology.domains[domain]) for domain in order]
    passes = [[one.forward, one.backward, (0.0,) * len(one.forward)] for one in work]
    if halves:
        passes = [[one.forward, one.input_gradient, one.weight_gradient] for one in work]
    stages, times = np.arange(len(order)), []
    for sums_before in zip(*passes, strict=True):
        total = np.array(sums_before)
        times.append((total[stages, ends] - total[stages, starts]) / rates)
    return times[0], times[1], times[2]


def _messages_s(
    problem: PlanningProblem, order: Sequence[int], *, upwards: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Least time of the message behind each stage and of its slowest wire, shaped (stages,).

    The last stage has nothing behind it: 0.
    """
    figures = []
    for here, there in pairwise(order):
        ends = (there, here) if upwards else (here, there)
        message_bytes = problem.workload.message_bytes
        figures.append(
            quickest_message_s(problem.topology, *ends, message_bytes, problem.corrections)
        )
    total_s, slowest_wire_s = zip(*figures, (0.0, 0.0), strict=True)
    return np.array(total_s), np.array(slowest_wire_s)


def _exclusive_cumsum(values: np.ndarray) -> np.ndarray:
    """Sum of all entries before each, along the last axis."""
    total: np.ndarray = np.cumsum(values, axis=-1) - values
    return total


def _inclusive_from_end(values: np.ndarray) -> np.ndarray:
    """Sum of each entry and all after it, along the last axis."""
    total: np.ndarray = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return total
