"""A plan with all that running it takes: world, job, trainer, GPUs and the time of a step."""

from dataclasses import dataclass
from functools import cached_property

from agents.trainers.plan_checks import check_plan, domains_in_use
from agents.trainers.table import trainer_named
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload, check_memory
from des.base.checks import require_positive
from des.world.domain import Domain


@dataclass(frozen=True, kw_only=True)
class BoundPlan:
    """A plan that a trainer can run on the GPUs of a world.

    Device ``k`` of a domain has its GPUs from ``k * gpus_per_device`` on, numbered server by
    server. A domain whose servers are not known counts as one server.

    Attributes
    ----------
    trainer
        Name of the trainer.
    step_s
        Time of a step, mean over a period of the synchronisation. [s]
    """

    topology: Topology
    workload: Workload
    plan: Plan
    trainer: str
    step_s: float
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        require_positive("bound plan", "step_s", self.step_s)
        self.plan.check_against(self.topology, self.workload)
        check_plan(trainer_named(self.trainer), self.topology, self.workload, self.plan)
        check_memory(self.topology, self.workload, self.plan)

    @cached_property
    def microbatch_size(self) -> float:
        """Sequences of a microbatch on a data rank, as trainers count them; the fewest of any."""
        return min(self.rank_sequences(domain) for domain in domains_in_use(self.plan))

    def rank_sequences(self, domain: int) -> float:
        """Sequences of a microbatch on a data rank of a domain, by its position."""
        shape = self.workload.shape
        whole = 1.0 if shape is None else shape.batch_size
        return whole / (self.plan.parallelism[domain].data if self.plan.parallelism else 1)

    def gpus_of(self, domain: int, device: int) -> tuple[str, ...]:
        """GPUs of a device as ``server/gpu``, both from 0; all of the domain's without devices."""
        own = self.topology.domains[domain]
        size, (_, per_server) = own.num_gpus, server_counts(own)
        if self.plan.parallelism:
            size = self.plan.parallelism[domain].gpus_per_device
        return tuple(
            f"{own.node_order[gpu // per_server]}/{gpu % per_server}"
            for gpu in range(device * size, (device + 1) * size)
        )


def server_counts(domain: Domain) -> tuple[int, int]:
    """Servers of a domain and GPUs of each; one of all its GPUs where they are not known."""
    return domain.num_nodes, domain.num_gpus // domain.num_nodes
