"""Whether a plan fits into the memory of its domains."""

from collections.abc import Sequence
from dataclasses import dataclass

from des.placement import Placement, Plan
from des.schedules import Orders, peaks_held, stage_orders
from des.topology import Topology
from des.transformer import BYTES_PER_PARAMETER
from des.workload import Workload


class InfeasiblePlacementError(ValueError):
    """The plan needs more memory than a domain has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMemory:
    """Peak memory that a plan needs in one domain, all GPUs together, and what there is."""

    domain: str
    model_state_bytes: float
    activation_bytes: float
    capacity_bytes: float

    def __str__(self) -> str:
        return (
            f"domain {self.domain} must hold at most {self.capacity_bytes / 1e9:.1f} GB, "
            f"got {self.required_bytes / 1e9:.1f} GB ({self.model_state_bytes / 1e9:.1f} GB "
            f"model state and {self.activation_bytes / 1e9:.1f} GB activations)"
        )

    @property
    def required_bytes(self) -> float:
        """Model state and activations together. [bytes]"""
        return self.model_state_bytes + self.activation_bytes

    @property
    def fits(self) -> bool:
        """Whether the domain has that much memory."""
        return self.required_bytes <= self.capacity_bytes

    @property
    def overflow_fraction(self) -> float:
        """Missing memory as a share of the capacity; 0 where the plan fits."""
        return max(0.0, self.required_bytes / self.capacity_bytes - 1.0)


def domain_memory(topology: Topology, workload: Workload, plan: Plan) -> tuple[DomainMemory, ...]:
    """Peak memory of every domain under a plan; see `memory_of_orders`."""
    num_stages = len(plan.placement.stages)
    orders = stage_orders(plan.schedule, num_stages, workload.num_microbatches)
    return memory_of_orders(topology, workload, plan.placement, orders)


def memory_of_orders(
    topology: Topology, workload: Workload, placement: Placement, orders: Orders
) -> tuple[DomainMemory, ...]:
    """Peak memory of every domain, in the order of the topology.

    Model state is `BYTES_PER_PARAMETER` per parameter, spread over the domain's GPUs. Each worker
    holds activations of as many microbatches as its order has in flight; the peaks of several
    workers in one domain are added, although they need not fall on the same moment.
    """
    stages = placement.stages
    state_bytes = [0.0] * topology.num_domains
    for stage in stages:
        parameters = sum(workload.num_parameters[stage.layers])
        state_bytes[stage.domain] += BYTES_PER_PARAMETER * parameters
    whole = [sum(workload.activation_bytes[stage.layers]) for stage in stages]
    halved = [sum(workload.weight_input_bytes[stage.layers]) for stage in stages]
    activation_bytes = [0.0] * topology.num_domains
    for moments in peaks_held(orders):
        domain = stages[moments[0][0].stage].domain
        activation_bytes[domain] += max(
            sum(
                held.num_whole * whole[held.stage] + held.num_halved * halved[held.stage]
                for held in moment
            )
            for moment in moments
        )
    return tuple(
        DomainMemory(
            domain=domain.name,
            model_state_bytes=state,
            activation_bytes=activations,
            capacity_bytes=domain.memory_bytes,
        )
        for domain, state, activations in zip(
            topology.domains, state_bytes, activation_bytes, strict=True
        )
    )


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
