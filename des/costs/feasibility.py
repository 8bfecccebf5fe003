"""Whether a plan fits into the memory of its domains, and the orders it works by."""

from collections.abc import Sequence
from functools import lru_cache

from des.costs.memory import (
    DomainMemory,
    InfeasiblePlacementError,
    Peaks,
    activation_room_bytes,
    kept_bytes,
    memory_of_orders,
)
from des.costs.stage_times import pipeline_of
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.schedules import (
    Operation,
    Order,
    Orders,
    is_static,
    peaks_held,
    schedule_orders,
    stage_orders,
)
from des.world.topology import Topology


def orders_of_plan(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
) -> Orders:
    """Orders of all workers of all replicas, whose stages are numbered one after another.

    Raises
    ------
    ValueError
        If the schedule cannot be made for the placement.
    """
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    if is_static(plan.schedule):
        return _static_orders(plan.schedule, plan.replica_sizes, shares)
    replicas = [
        schedule_orders(plan.schedule, pipeline_of(topology, workload, plan, replica, corrections))
        for replica in range(len(shares))
    ]
    return _numbered(replicas, plan.replica_sizes)


def peaks_of_plan(workload: Workload, plan: Plan, orders: Orders) -> Peaks:
    """Peak memory of the workers of a plan, by `peaks_held` of its orders."""
    if not is_static(plan.schedule):
        return peaks_held(orders)
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    return _static_peaks(plan.schedule, plan.replica_sizes, shares)


@lru_cache(maxsize=1024)
def _static_orders(name: str, replica_sizes: tuple[int, ...], shares: tuple[int, ...]) -> Orders:
    replicas = [
        stage_orders(name, num_stages, num_microbatches)
        for num_stages, num_microbatches in zip(replica_sizes, shares, strict=True)
    ]
    return _numbered(replicas, replica_sizes)


@lru_cache(maxsize=1024)
def _static_peaks(name: str, replica_sizes: tuple[int, ...], shares: tuple[int, ...]) -> Peaks:
    return peaks_held(_static_orders(name, replica_sizes, shares))


def _numbered(replicas: Sequence[Orders], replica_sizes: Sequence[int]) -> Orders:
    """Orders of replicas, each numbered from 0, with stages numbered one after another."""
    first, *others = replicas
    orders = list(first)
    first_stage = replica_sizes[0]
    for own, num_stages in zip(others, replica_sizes[1:], strict=True):
        orders += (_moved(order, first_stage) for order in own)
        first_stage += num_stages
    return tuple(orders)


def _moved(order: Order, first_stage: int) -> Order:
    return tuple(
        Operation(kind, microbatch, first_stage + stage) for kind, microbatch, stage in order
    )


def domain_memory(topology: Topology, workload: Workload, plan: Plan) -> tuple[DomainMemory, ...]:
    """Peak memory of every domain under a plan; see `memory_of_orders`.

    A schedule that looks at times is judged at the speeds of the topology, without corrections.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology.
    """
    plan.check_against(topology, workload)
    return memory_of_orders(topology, workload, plan, orders_of_plan(topology, workload, plan))


def check_memory(topology: Topology, workload: Workload, plan: Plan) -> None:
    """Refuse a plan that does not fit.

    Raises
    ------
    InfeasiblePlacementError
        Naming the domain that lacks most, what it needs and what it has, and the first operation
        that does not fit.
    """
    plan.check_against(topology, workload)
    orders = orders_of_plan(topology, workload, plan)
    tightest = tightest_domain(memory_of_orders(topology, workload, plan, orders))
    if not tightest.fits:
        operation = _first_misfit(topology, workload, plan, orders, tightest.domain)
        found = "" if operation is None else f"; {operation} is the first not to fit"
        raise InfeasiblePlacementError(f"plan: {tightest}{found}")


def _first_misfit(
    topology: Topology, workload: Workload, plan: Plan, orders: Orders, domain: str
) -> Operation | None:
    """First operation of a domain's workers that finds no room; None if the model state has none.

    Workers of one device are looked at one by one.
    """
    stages = plan.stages
    for order in orders:
        here = [stages[index] for index in sorted({operation.stage for operation in order})]
        if not here or topology.domains[here[0].domain].name != domain:
            continue
        room = activation_room_bytes(topology, workload, here, plan)
        held = 0.0
        for operation in order if room >= 0.0 else ():
            stage = stages[operation.stage]
            kept, halved = kept_bytes(workload, stage, plan.parallelism_of(stage.domain))
            held += {"F": kept, "B": -kept, "D": halved - kept, "W": -halved}[operation.kind]
            if held > room:
                return operation
    return None


def tightest_domain(memories: Sequence[DomainMemory]) -> DomainMemory:
    """Return the domain that lacks most of its memory; the first one where none lacks any."""
    return max(memories, key=lambda memory: memory.overflow_fraction)


def check_job_fits(topology: Topology, workload: Workload) -> None:
    """Refuse a job whose model state is larger than the memory of all domains together.

    A job that passes need not have a plan that fits: activations come on top.

    Raises
    ------
    InfeasiblePlacementError
        Naming what is needed and what there is.
    """
    state_bytes = workload.state_bytes * workload.sums_before.num_parameters[-1]
    memory_bytes = sum(domain.memory_bytes for domain in topology.domains)
    if state_bytes > memory_bytes:
        raise InfeasiblePlacementError(
            f"workload {workload.name}: model state must be at most the "
            f"{memory_bytes / 1e9:.1f} GB of all domains together, got {state_bytes / 1e9:.1f} GB"
        )
