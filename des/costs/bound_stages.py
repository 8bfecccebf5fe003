"""Stages bound to their devices: what costs, memory and operations are worked out from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from des.costs.outer_state import holds_outer_state
from des.plan.parallelism import Parallelism
from des.plan.placement import Stage, device_numbers
from des.plan.plan import Plan
from des.world.domain import Domain
from des.world.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStage:
    """A stage with all that a plan and a world say about the device that does it.

    Attributes
    ----------
    stage
        Its layers, and its domain and device there.
    replica
        Replica that it belongs to.
    device
        Number of its device among those in use.
    domain, parallelism
        Its domain, and how the GPUs of it divide the work; None where they work as one device.
    optimiser_shards
        Replicas that share one optimiser state; 1 where each has a whole one.
    holds_outer_state
        Whether its GPUs hold the state of an outer optimiser.
    """

    stage: Stage
    replica: int
    device: int
    domain: Domain
    parallelism: Parallelism | None
    optimiser_shards: int
    holds_outer_state: bool

    @property
    def num_gpus(self) -> int:
        """GPUs that work as the device: all of the domain unless they share otherwise."""
        if self.parallelism is None:
            return self.domain.num_gpus
        return self.parallelism.gpus_per_device


def bound_stages(topology: Topology, plan: Plan) -> tuple[BoundStage, ...]:
    """Bind the stages of all replicas of a plan, which must match the topology."""
    stages = plan.stages
    replicas = accumulate((stage.first_layer == 0 for stage in stages[1:]), initial=0)
    division = {
        domain: plan.parallelism_of(domain) for domain in {stage.domain for stage in stages}
    }
    shards, holds_outer = plan.optimiser_shards, holds_outer_state(plan)
    return tuple(
        BoundStage(
            stage=stage,
            replica=replica,
            device=device,
            domain=topology.domains[stage.domain],
            parallelism=division[stage.domain],
            optimiser_shards=shards,
            holds_outer_state=holds_outer,
        )
        for stage, replica, device in zip(stages, replicas, device_numbers(stages), strict=True)
    )


def by_device(stages: Iterable[BoundStage]) -> dict[int, list[BoundStage]]:
    """Stages of each device, by its number."""
    found: dict[int, list[BoundStage]] = {}
    for one in stages:
        found.setdefault(one.device, []).append(one)
    return found


def by_replica(stages: Iterable[BoundStage]) -> tuple[tuple[BoundStage, ...], ...]:
    """Stages of each replica, from the input to the output."""
    found: dict[int, list[BoundStage]] = {}
    for one in stages:
        found.setdefault(one.replica, []).append(one)
    return tuple(map(tuple, found.values()))


def runs_of(stages: Sequence[BoundStage]) -> list[tuple[int, int]]:
    """First layer and number of layers of each stage."""
    return [(one.stage.first_layer, one.stage.num_layers) for one in stages]
