"""Simulation of one iteration of a plan."""

from collections.abc import Sequence

from des.costs.bound_stages import bound_stages
from des.engine.iteration import run_alone
from des.engine.result import IterationResult
from des.job.workload import Workload
from des.plan.buckets import buckets_behind
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.program.lowering import lower, lower_exchange
from des.schedules import Order
from des.world.topology import Topology


def simulate(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    step: int = 0,
    orders: Sequence[Order] | None = None,
) -> IterationResult:
    """Simulate one iteration of a plan.

    A plan that exceeds the memory of a domain is simulated as if it fitted, and the result says so
    in ``fits_memory``; see `des.costs.feasibility.check_memory` to refuse it.

    Parameters
    ----------
    step
        Position of the iteration in the training, from 0: replicas that do not synchronise after
        every step do so after some.
    orders
        Orders instead of those of the plan's schedule, for a plan of one replica.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology, or the orders do not do each pass
        of each microbatch once and in turn.
    UnreachableError
        If the plan sends between domains that no path joins.
    StarvationError
        If a message waits for a link that is down for ever.
    DeadlockError
        If the orders make the workers wait for each other; the message names the operations.
    """
    program = lower(topology, workload, plan, corrections, step=step, orders=orders)
    return run_alone(topology, program, corrections).result()


def exchange_behind_s(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    step: int,
    corrections: Corrections = NO_CORRECTIONS,
) -> float:
    """Time of the exchange that starts after a step and continues during the next ones. [s]

    It has the links to itself here; 0 where nothing is due or what is due does not wait.
    """
    stages, buckets = bound_stages(topology, plan), buckets_behind(workload, plan, step)
    program = lower_exchange(
        topology, workload, stages, buckets, corrections, exchange=plan.exchange
    )
    return run_alone(topology, program, corrections).ended_s
