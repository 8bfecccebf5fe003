"""Whether a plan fits into the memory of its domains, and the orders it works by."""

from collections.abc import Sequence

from des.corrections import NO_CORRECTIONS, Corrections
from des.memory import (
    DomainMemory,
    InfeasiblePlacementError,
    activation_room_bytes,
    memory_of_orders,
)
from des.plan import Plan, plan_stages, replica_stages
from des.schedules import Operation, Order, Orders, is_static, orders_of, stage_orders
from des.stage_times import pipeline_of
from des.topology import Topology
from des.transformer import BYTES_PER_PARAMETER
from des.workload import Workload


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
    orders: list[Order] = []
    first_stage = 0
    for replica, (placement, num_microbatches) in enumerate(
        zip(plan.placements, shares, strict=True)
    ):
        num_stages = len(replica_stages(placement, plan.parallelism))
        if is_static(plan.schedule):
            own = stage_orders(plan.schedule, num_stages, num_microbatches)
        else:
            own = orders_of(
                plan.schedule, pipeline_of(topology, workload, plan, replica, corrections)
            )
        orders += own if first_stage == 0 else (_moved(order, first_stage) for order in own)
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
    stages = plan_stages(plan)
    for order in orders:
        here = [stages[index] for index in sorted({operation.stage for operation in order})]
        if not here or topology.domains[here[0].domain].name != domain:
            continue
        room = activation_room_bytes(topology, workload, here, plan.parallelism)
        held = 0.0
        for operation in order if room >= 0.0 else ():
            layers = stages[operation.stage].layers
            kept = sum(workload.activation_bytes[layers])
            halved = sum(workload.weight_input_bytes[layers])
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
    state_bytes = BYTES_PER_PARAMETER * sum(workload.num_parameters)
    memory_bytes = sum(domain.memory_bytes for domain in topology.domains)
    if state_bytes > memory_bytes:
        raise InfeasiblePlacementError(
            f"workload {workload.name}: model state must be at most the "
            f"{memory_bytes / 1e9:.1f} GB of all domains together, got {state_bytes / 1e9:.1f} GB"
        )
