"""The planner that trusts a formula of the iteration time instead of a simulator."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.choice.chains import Order, mutual_links, orders_to_look_at
from agents.planners.choice.choosing import best_of, share_out
from des import (
    DomainMemory,
    InfeasiblePlacementError,
    Placement,
    Plan,
    UnreachableError,
    domain_memory,
)
from des.costs.feasibility import tightest_domain
from des.costs.layer_work import least_work_before
from des.costs.memory import model_state_bytes
from des.costs.message_times import quickest_message_s
from des.costs.stage_times import compute_rate_flops_per_s
from des.schedules import is_static, most_held, stage_orders

MOST_DOMAINS_FOR_ALL_ORDERS = 6
"""Most domains of which all orders are tried; above, only the best chain of every subset."""

_NUM_HALVINGS = 60
"""Halvings of the range of the time of the slowest stage: more than a float can resolve."""

_ROUNDING = 1e-12
"""Relative slack against the rounding of sums."""


class FormulaFigures(NamedTuple):
    """Inputs of the formula: work done before each layer, speeds and borders of domains."""

    work_flops: np.ndarray
    rate_flops_per_s: np.ndarray
    border_s: np.ndarray


def formula(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Choose the order, subset and split that a formula of the iteration time says is best.

    The time is ``(m - 1) max_s (c_s + x_s) + sum_s c_s + sum_s x_s``: ``c_s`` of a microbatch's
    forward and backward pass on stage ``s`` and ``x_s`` of its message over the border behind it,
    wire and latency, in the worse direction; ``m`` microbatches. So no transfer overlaps computing,
    and the schedule does not count but for the memory that it needs. The training is that of one
    model: nothing changes in it.

    Raises
    ------
    InfeasiblePlacementError
        If no plan that it looks at fits into memory.

    Notes
    -----
    That is the model of the iteration by which Sailor ranks its plans [1]_, for one pipeline with a
    stage a domain. The formula chooses the best order twice: with layers in proportion to speed,
    and with the split of least ``max_s (c_s + x_s)`` whose stages fit into memory, found by halving
    the range of that time and filling stages from the first one. The latter is always better by the
    formula, but gives too much to stages without a border where transfers do overlap; so of the two
    plans the simulator has the last word. Up to 6 domains all orders are looked at, of more the
    best chain of every subset (`chains.orders_to_look_at`).

    References
    ----------
    .. [1] F. Strati et al., "Sailor: Automating distributed training over dynamic, heterogeneous,
       and geo-distributed clusters", SOSP'25, arXiv 2504.17096.
    """
    figures = formula_figures(problem)
    bandwidth, latency = mutual_links(problem.topology)
    by_size: dict[int, list[Order]] = {}
    for order in orders_to_look_at(
        bandwidth,
        latency,
        most_stages=problem.workload.num_layers,
        all_up_to=MOST_DOMAINS_FOR_ALL_ORDERS,
    ):
        by_size.setdefault(len(order), []).append(order)
    plans = []
    for split in (_proportional_splits, _level_splits):
        ranked: list[tuple[float, Order, list[int]]] = []
        for orders in by_size.values():
            ends, times_s = split(problem, figures, np.array(orders))
            ranked += zip(times_s.tolist(), orders, ends.tolist(), strict=True)
        plans.append(_first_that_fits(problem, sorted(ranked)))
    found = [plan for plan in plans if plan is not None]
    if not found:
        raise InfeasiblePlacementError(
            f"formula: no plan that it looks at fits; evenly split, {_shortfall(problem)}"
        )
    return best_of(problem, found)


def _first_that_fits(
    problem: PlanningProblem, ranked: Sequence[tuple[float, Order, list[int]]]
) -> Plan | None:
    for time_s, order, ends in ranked:
        if not np.isfinite(time_s):
            break
        counts = np.diff(ends, prepend=0).tolist()
        plan = problem.plan(Placement.contiguous(order, counts))
        if all(one.fits for one in domain_memory(problem.topology, problem.workload, plan)):
            return plan
    return None


def _shortfall(problem: PlanningProblem) -> DomainMemory:
    """Memory of the domain that is tightest under the even split."""
    num_domains, num_layers = problem.topology.num_domains, problem.workload.num_layers
    plan = problem.plan(Placement.even(num_domains, num_layers))
    return tightest_domain(domain_memory(problem.topology, problem.workload, plan))


def formula_figures(problem: PlanningProblem) -> FormulaFigures:
    """Work out the figures that the formula needs of a job on a network."""
    workload, topology = problem.workload, problem.topology
    least = least_work_before(workload, topology.domains)
    size = topology.num_domains
    border_s = np.zeros((size, size))
    for here in range(size):
        for there in range(here):
            border_s[here, there] = border_s[there, here] = _border_s(problem, here, there)
    return FormulaFigures(
        work_flops=np.array(least.forward) + np.array(least.backward),
        rate_flops_per_s=np.array(
            [compute_rate_flops_per_s(domain, problem.corrections) for domain in topology.domains]
        ),
        border_s=border_s,
    )


def _border_s(problem: PlanningProblem, here: int, there: int) -> float:
    """Time of a message in the worse direction; ``inf`` where no path leads. [s]"""
    num_bytes = problem.workload.message_bytes
    try:
        return max(
            quickest_message_s(problem.topology, *ends, num_bytes, problem.corrections)[0]
            for ends in ((here, there), (there, here))
        )
    except UnreachableError:
        return np.inf


def _borders_of(figures: FormulaFigures, orders: np.ndarray) -> np.ndarray:
    """Time of the border behind each stage, (N, stages); none is after the last."""
    behind = np.zeros(orders.shape)
    behind[:, :-1] = figures.border_s[orders[:, :-1], orders[:, 1:]]
    return behind


def formula_times_s(
    problem: PlanningProblem, figures: FormulaFigures, orders: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Iteration times by the formula of layers that end where they do, (N,)."""
    work = np.diff(figures.work_flops[ends], axis=1, prepend=0.0)
    compute_s = work / figures.rate_flops_per_s[orders]
    border_s = _borders_of(figures, orders)
    slowest_s = (compute_s + border_s).max(axis=1)
    times_s: np.ndarray = (
        (problem.workload.num_microbatches - 1) * slowest_s
        + compute_s.sum(axis=1)
        + border_s.sum(axis=1)
    )
    return times_s


def _proportional_splits(
    problem: PlanningProblem, figures: FormulaFigures, orders: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split the layers in proportion to speed: ends (N, stages), times (N,).

    The time is ``inf`` where a stage gets no layer or stages are not joined.
    """
    num_layers = problem.workload.num_layers
    counts = [share_out(num_layers, rates) for rates in figures.rate_flops_per_s[orders].tolist()]
    ends = np.cumsum(counts, axis=1)
    times_s = formula_times_s(problem, figures, orders, ends)
    return ends, np.where(np.min(counts, axis=1) > 0, times_s, np.inf)


def _level_splits(
    problem: PlanningProblem, figures: FormulaFigures, orders: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split the layers so that the slowest stage is least slow: ends (N, stages), times (N,).

    The time is ``inf`` where stages do not fit or are not joined.
    """
    num_ways, num_stages = orders.shape
    memory = _memory_before(problem, num_stages)
    capacity = np.array([domain.memory_bytes for domain in problem.topology.domains])[orders]
    rates, border_s = figures.rate_flops_per_s[orders], _borders_of(figures, orders)
    joined = np.isfinite(border_s).all(axis=1)
    border_s = np.where(joined[:, np.newaxis], border_s, 0.0)

    def filled(limit_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _fill(figures, memory, capacity, rates, limit_s[:, np.newaxis] - border_s)

    low_s = np.zeros(num_ways)
    high_s = (figures.work_flops[-1] / rates + border_s).max(axis=1)
    for _ in range(_NUM_HALVINGS):
        middle_s = (low_s + high_s) / 2.0
        holds = filled(middle_s)[1]
        low_s, high_s = np.where(holds, low_s, middle_s), np.where(holds, middle_s, high_s)
    ends, holds = filled(high_s)
    times_s = np.full(num_ways, np.inf)
    rows = np.flatnonzero(holds & joined)
    times_s[rows] = formula_times_s(problem, figures, orders[rows], ends[rows])
    return ends, times_s


def _fill(
    figures: FormulaFigures,
    memory: np.ndarray,
    capacity: np.ndarray,
    rates: np.ndarray,
    room_s: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Fill stages from the first one with all that their time and memory hold.

    Returns where they end, (N, stages), and whether each has a layer and none is left over, (N,).
    A stage leaves at least one layer for every later one.
    """
    num_ways, num_stages = rates.shape
    num_layers = len(figures.work_flops) - 1
    ends = np.zeros((num_ways, num_stages), dtype=np.int64)
    begin = np.zeros(num_ways, dtype=np.int64)
    holds = np.ones(num_ways, dtype=np.bool_)
    for stage in range(num_stages):
        work = figures.work_flops
        most_work = (work[begin] + room_s[:, stage] * rates[:, stage]) * (1.0 + _ROUNDING)
        end = np.searchsorted(work, most_work, side="right") - 1
        most_bytes = (memory[stage][begin] + capacity[:, stage]) * (1.0 + _ROUNDING)
        end = np.minimum(end, np.searchsorted(memory[stage], most_bytes, side="right") - 1)
        end = np.minimum(end, num_layers - (num_stages - 1 - stage))
        holds &= end > begin
        begin = ends[:, stage] = np.maximum(end, begin)
    holds &= begin == num_layers
    return ends, holds


def _memory_before(problem: PlanningProblem, num_stages: int) -> np.ndarray:
    """Memory of all layers before each one, if they were on each stage, (stages, L + 1). [bytes]

    A schedule that looks at times holds, for all the formula knows, one microbatch at least.
    """
    held: Sequence[int] = (1,) * num_stages
    if is_static(problem.schedule):
        orders = stage_orders(problem.schedule, num_stages, problem.workload.num_microbatches)
        held = most_held(orders, num_stages)
    before = problem.workload.sums_before
    state_bytes = model_state_bytes(problem.workload, 1.0, None) * np.array(before.num_parameters)
    return state_bytes + np.outer(held, np.array(before.activation_bytes))
