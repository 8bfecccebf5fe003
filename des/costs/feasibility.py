"""Whether a plan fits into the memory of its domains, and the orders it works by."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from des.costs.bound_stages import BoundStage, bound_stages, by_replica
from des.costs.memory import (
    DomainMemory,
    InfeasiblePlacementError,
    Peaks,
    activation_room_bytes,
    kept_bytes,
    memory_of_peaks,
)
from des.costs.stage_times import pipeline_of
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.placement import device_numbers
from des.plan.plan import Plan
from des.schedules import (
    Operation,
    Order,
    Orders,
    asks_times,
    check_orders,
    device_orders,
    peaks_held,
    schedule_orders,
)
from des.world.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """All stages on their devices, and what every worker does in order.

    Attributes
    ----------
    shares
        Microbatches of each replica.
    replica_sizes
        Stages of each replica, which are numbered one after another.
    peaks
        Activations of every worker at its potential peaks.
    """

    stages: tuple[BoundStage, ...]
    shares: tuple[int, ...]
    replica_sizes: tuple[int, ...]
    orders: Orders
    peaks: Peaks


def assign(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    orders: Sequence[Order] | None = None,
) -> Assignment:
    """Bind the stages of a plan, and order the passes of all workers.

    Parameters
    ----------
    orders
        Orders instead of those of the plan's schedule, for a plan of one replica.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology, its schedule cannot be had, or the
        orders do not do each pass of each microbatch once and in turn.
    """
    plan.check_against(topology, workload)
    stages = bound_stages(topology, plan)
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    replicas = by_replica(stages)
    sizes = tuple(map(len, replicas))
    is_known = orders is None and not asks_times(plan.schedule)
    devices = tuple(device_numbers([one.stage for one in own]) for own in replicas)
    if orders is not None:
        if plan.replicas:
            raise ValueError(f"simulate: orders must be of one replica, got {len(sizes)}")
        check_orders(orders, [one.device for one in stages], workload.num_microbatches)
        found = tuple(orders)
    elif is_known:
        found = _known_orders(plan.schedule, devices, shares)
    else:
        compression = plan.activation_compression
        pipelines = (
            pipeline_of(topology, workload, own, corrections, share, compression=compression)
            for own, share in zip(replicas, shares, strict=True)
        )
        found = _number([schedule_orders(plan.schedule, one) for one in pipelines], sizes)
    return Assignment(
        stages=stages,
        shares=shares,
        replica_sizes=sizes,
        orders=found,
        peaks=_known_peaks(plan.schedule, devices, shares) if is_known else peaks_held(found),
    )


@lru_cache(maxsize=1024)
def _known_orders(
    name: str, devices: tuple[tuple[int, ...], ...], shares: tuple[int, ...]
) -> Orders:
    pairs = zip(devices, shares, strict=True)
    return _number([device_orders(name, *each) for each in pairs], list(map(len, devices)))


@lru_cache(maxsize=1024)
def _known_peaks(name: str, devices: tuple[tuple[int, ...], ...], shares: tuple[int, ...]) -> Peaks:
    return peaks_held(_known_orders(name, devices, shares))


def _number(replicas: Sequence[Orders], replica_sizes: Sequence[int]) -> Orders:
    """Orders of replicas, each numbered from 0, with stages numbered one after another."""
    first, *others = replicas
    orders = list(first)
    first_stage = replica_sizes[0]
    for own, num_stages in zip(others, replica_sizes[1:], strict=True):
        orders += (_move(order, first_stage) for order in own)
        first_stage += num_stages
    return tuple(orders)


def _move(order: Order, first_stage: int) -> Order:
    return tuple(
        Operation(kind, microbatch, first_stage + stage) for kind, microbatch, stage in order
    )


def domain_memory(topology: Topology, workload: Workload, plan: Plan) -> tuple[DomainMemory, ...]:
    """Peak memory of every domain under a plan, in the order of the topology.

    A schedule that looks at times is judged at the speeds of the topology, without corrections.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology.
    """
    assigned = assign(topology, workload, plan)
    return memory_of_peaks(workload, topology.domains, assigned.stages, assigned.peaks)


def check_memory(topology: Topology, workload: Workload, plan: Plan) -> None:
    """Refuse a plan that does not fit.

    Raises
    ------
    InfeasiblePlacementError
        Naming the domain that lacks most, what it needs and what it has, and the first operation
        that does not fit.
    """
    assigned = assign(topology, workload, plan)
    stages = assigned.stages
    tightest = tightest_domain(memory_of_peaks(workload, topology.domains, stages, assigned.peaks))
    if not tightest.fits:
        operation = _first_misfit(workload, stages, assigned.orders, tightest.domain)
        found = "" if operation is None else f"; {operation} is the first not to fit"
        raise InfeasiblePlacementError(f"plan: {tightest}{found}")


def _first_misfit(
    workload: Workload, stages: Sequence[BoundStage], orders: Orders, domain: str
) -> Operation | None:
    """First operation of a domain's workers that finds no room; None if the model state has none.

    Workers of one device are looked at one by one.
    """
    for order in orders:
        here = [stages[index] for index in sorted({operation.stage for operation in order})]
        if not here or here[0].domain.name != domain:
            continue
        room = activation_room_bytes(workload, here)
        held = 0.0
        for operation in order if room >= 0.0 else ():
            kept, halved = kept_bytes(workload, stages[operation.stage])
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
