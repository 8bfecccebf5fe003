"""Whether a plan fits into the memory of its domains, and the orders it works by."""

from collections.abc import Sequence

from des.corrections import NO_CORRECTIONS, Corrections
from des.memory import DomainMemory, InfeasiblePlacementError, memory_of_orders
from des.plan import Plan, replica_stages
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
    InfeasiblePlacementError
        If the schedule has to fit into memory and there is none left for activations.
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
        Naming the domain that lacks most, what it needs and what it has.
    """
    tightest = tightest_domain(domain_memory(topology, workload, plan))
    if not tightest.fits:
        raise InfeasiblePlacementError(f"plan: {tightest}")


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
