"""The fastest order by constraint programming, with a proof of how far from it one may be."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from des.base.checks import require_non_negative
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.check import check_order_memory
from des.schedules.deep_1f1b import deep_1f1b
from des.schedules.exact_model import OrderModel, stages_with_whole_passes
from des.schedules.greedy import greedy
from des.schedules.operations import Operation, Orders, Pass
from des.schedules.pipeline import Pipeline
from des.schedules.recurrence import timing_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSchedule:
    """The best orders found, their makespan, and what no orders can go below."""

    orders: Orders
    makespan_s: float
    lower_bound_s: float

    @property
    def gap_fraction(self) -> float:
        """Excess over the bound; 0 is proven optimal, up to the search's rounding.

        Infinite where the search had no time to prove anything.
        """
        if self.lower_bound_s == 0.0:
            return math.inf
        return self.makespan_s / self.lower_bound_s - 1.0


def exact(
    pipeline: Pipeline,
    *,
    starts: Sequence[Orders] = (),
    time_limit_s: float = 300.0,
    work_limit: float = math.inf,
    seed: int = 0,
) -> ExactSchedule:
    """Search for the orders of least makespan within memory, from the best that is known.

    The search starts from the fastest of `greedy`, `automatic_zero_bubble`, `deep_1f1b` where each
    device has one stage, and ``starts``, and never returns worse.

    Parameters
    ----------
    starts
        Further orders, one per device, that are valid; those that do not fit into memory are passed
        over.
    time_limit_s
        Limit of the search. What is found within a time differs from run to run.
    work_limit
        Limit in units of CP-SAT's deterministic time, 3 to 10 s of a core each. If it ends
        the search, or nothing does, equal arguments give equal results.
    seed
        Of the search.

    Raises
    ------
    ValueError
        If a device has no memory for one microbatch on each of its stages, or a limit is negative.

    Notes
    -----
    The model is CrossPipe's [1]_: an interval for each pass and each transfer; a device and a wire
    do one thing at a time; a pass starts when its input has arrived; memory as in `peak_bytes`;
    passes of a kind on a stage go in the order of the microbatches, which are alike. Where a stage
    keeps more for its weight gradient than it frees at its input gradient, each of its backward
    passes is whole or in two halves, as the search chooses: a whole one sends later and needs less
    memory. Anywhere else two halves in a row are as good as a whole. Times are cut
    to whole microseconds (a 10^8th of the makespan where that is longer) and activations to whole
    millionths of the memory, and a wire may hold back a message for one of another stage. All of
    that makes the model's optimum less, so its bound is a bound. The makespan is that of
    `timing_of`, and orders are kept only if they fit by `check_order_memory`.

    References
    ----------
    .. [1] T. Chen et al., "CrossPipe: Towards Optimal Pipeline Schedules for Cross-Datacenter
       Training", USENIX ATC 2025.

    Examples
    --------
    >>> found = exact(Pipeline.uniform(2, 3))
    >>> found.makespan_s, found.lower_bound_s, found.gap_fraction
    (10.0, 10.0, 0.0)
    """
    require_non_negative("exact", "time_limit_s", time_limit_s)
    if not work_limit >= 0.0:
        raise ValueError(f"exact: work_limit must be at least 0, got {work_limit!r}")
    known = [greedy(pipeline), automatic_zero_bubble(pipeline, "makespan_s")]
    further = list(starts)
    if pipeline.num_devices == pipeline.num_stages:
        further.append(deep_1f1b(pipeline))
    for whole_stages in {frozenset[int](): None, stages_with_whole_passes(pipeline): None}:
        known += (_in_halves(orders, whole_stages) for orders in further)
    fitting = [orders for orders in known if _fits(orders, pipeline)]
    start = min(fitting, key=lambda orders: timing_of(orders, pipeline).makespan_s)
    search = OrderModel(pipeline, start)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.max_deterministic_time = work_limit
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # Ctrl-C ends the program, not the search alone
    solver.parameters.interleave_search = True  # several strategies in turn, deterministically
    status = solver.solve(search.cp)
    known_status = (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN)
    assert status in known_status, solver.status_name(status)
    orders = (
        start if status == cp_model.UNKNOWN else _better(search.orders(solver), start, pipeline)
    )
    makespan_s = timing_of(orders, pipeline).makespan_s
    lower_bound_s = solver.best_objective_bound * search.tick_s
    return ExactSchedule(
        orders=orders,
        makespan_s=makespan_s,
        lower_bound_s=min(lower_bound_s, makespan_s),  # less but for the last digits
    )


def _better(found: Orders, start: Orders, pipeline: Pipeline) -> Orders:
    """The faster of the two, or the start where what was found does not fit."""
    if not _fits(found, pipeline):  # the model's memory was rounded
        return start
    return min(start, found, key=lambda orders: timing_of(orders, pipeline).makespan_s)


def _fits(orders: Orders, pipeline: Pipeline) -> bool:
    """Whether orders keep within memory: halves of a backward pass may need more than it."""
    try:
        check_order_memory(orders, pipeline)
    except ValueError:
        return False
    return True


def _in_halves(orders: Orders, whole_stages: Collection[int]) -> Orders:
    """The same orders with each whole backward pass as its two halves, but for some stages."""
    return tuple(
        tuple(
            half
            for one in order
            for half in ((one,) if one.stage in whole_stages else _halves(one))
        )
        for order in orders
    )


def _halves(operation: Operation) -> Iterator[Operation]:
    kinds: tuple[Pass, ...] = ("D", "W") if operation.kind == "B" else (operation.kind,)
    for kind in kinds:
        yield Operation(kind, operation.microbatch, operation.stage)
