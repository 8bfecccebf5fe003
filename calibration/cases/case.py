"""Calibration cases: one iteration that both simulators can run, and its measurement."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

from des.base.checks import require_non_negative, require_one_of
from des.costs.bound_stages import BoundStage, bound_stages
from des.costs.stage_times import compute_rate_flops_per_s, stage_times_s
from des.job.workload import Workload
from des.plan.buckets import buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.parallelism import Parallelism
from des.plan.placement import Placement, Stage
from des.plan.plan import Plan, replica_stages
from des.plan.synchronisation import EVERY_STEP
from des.schedules import Pass
from des.world.topology import Topology

Granularity = Literal["domain", "gpu"]
"""One NPU per domain, or one per GPU in dimensions ``[gpus_per_domain, num_domains]``."""

LEAST_PEAK_FLOPS_PER_S, MOST_PEAK_FLOPS_PER_S = 1e12, 1e15
"""Between them a nanosecond is at least 1000 operations, and 18 000 s fit 64 bits."""


@dataclass(frozen=True, kw_only=True)
class PlacementCase:
    """One iteration that an execution trace can hold.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology; or for what ASTRA-sim has no
        counterpart of: links that move within the iteration, shared fairly or by both directions,
        TCP windows, uplinks and caps, workers that wait for their messages, replicas that do not
        synchronise after every step, several devices in a domain at granularity ``domain`` or with
        replicas, chunks of devices in a wave, a replica on each domain in an order of their own at
        that granularity, nodes of a domain, sharded gradients, context and expert parallelism at
        granularity ``gpu``, and gradients that are summed up when several devices have all
        finished.
    """

    topology: Topology
    workload: Workload
    plan: Plan
    granularity: Granularity = "domain"

    def __post_init__(self) -> None:
        require_one_of("case", "granularity", self.granularity, get_args(Granularity))
        self.plan.check_against(self.topology, self.workload)
        if self.topology.num_domains < 2:
            raise ValueError(
                f"case: topology must have at least 2 domains, got {self.topology.num_domains}"
            )
        if self.topology.movement is not None:
            raise ValueError(
                "case: topology.movement must be None, got links that move within the iteration; "
                "take a snapshot of them, such as topology.at_start()"
            )
        self._check_transport()
        if self.plan.synchronisation != EVERY_STEP:
            raise ValueError(
                "case: plan.synchronisation must be after every step, "
                f"got {self.plan.synchronisation!r}"
            )
        self._check_devices()

    def _check_devices(self) -> None:
        """Refuse devices that NPUs cannot stand for."""
        plan = self.plan
        for domain in self.topology.domains if self.granularity == "gpu" else ():
            if domain.nodes is not None:
                raise ValueError(
                    f"case: nodes of domain {domain.name} must be left out at granularity gpu, "
                    "where the GPUs of a domain are one dimension; "
                    f"got nodes of {domain.nodes.gpus_per_node} GPUs"
                )
        if plan.shares_domains:
            raise ValueError(
                "case: plan.shares_domains must be False, as NPUs do their passes in one order "
                "each; got True"
            )
        for domain, parallelism in zip(self.topology.domains, plan.parallelism, strict=False):
            if self.granularity == "gpu":
                _check_gpus(domain.name, parallelism)
            if parallelism.pipeline > 1 and (self.granularity == "domain" or plan.replicas):
                raise ValueError(
                    f"case: parallelism.pipeline of domain {domain.name} must be 1 at granularity "
                    f"domain, or with replicas; got {parallelism.pipeline}"
                )
            if parallelism.chunks > 1 and parallelism.chunk_order == "wave":
                raise ValueError(
                    f"case: parallelism.chunk_order of domain {domain.name} must be loop, as an "
                    "NPU sends nothing to itself where a wave turns; got wave"
                )
        self._check_ring()
        if plan.exchange.overlapped or not buckets_of(self.workload, plan, 0):
            return
        for placement in plan.placements:
            num_devices = len({(one.domain, one.device) for one in self._stages_of(placement)})
            if num_devices > 1:
                raise ValueError(
                    "case: plan.exchange.overlapped must be True where a replica has several "
                    "devices, as none of them knows when all have finished; "
                    f"got False with {num_devices} devices"
                )

    def _check_ring(self) -> None:
        """Refuse all but all-reduces, in rings that ASTRA-sim goes round in the same order."""
        if self.plan.exchange.sharded:
            raise ValueError(
                "case: plan.exchange.sharded must be False, as gradients of replicas are summed up "
                "in all-reduces; got True"
            )
        if self.plan.exchange.tree:
            raise ValueError(
                "case: plan.exchange.tree must be empty, as ASTRA-sim's all-reduces are rings; "
                f"got {self.plan.exchange.tree}"
            )
        first_domains = [placement.domain_of_layer[0] for placement in self.plan.placements]
        num_domains = self.topology.num_domains
        if self.granularity == "gpu" or len(first_domains) < num_domains:
            return
        if any((there - here) % num_domains != 1 for here, there in pairwise(first_domains)):
            raise ValueError(
                "case: plan.replicas must follow the order of the topology where each domain is "
                f"one, as an all-reduce over all NPUs does; got domains {first_domains}"
            )

    def _stages_of(self, placement: Placement) -> tuple[Stage, ...]:
        return replica_stages(placement, self.plan.parallelism)

    def _check_transport(self) -> None:
        transport = self.topology.transport
        self.topology.require_no_limits("case")
        for field, allowed in (
            ("sharing", ("fifo", "none")),
            ("half_duplex", (False,)),
            ("window_bytes", (None,)),
            ("endpoints", ("overlapped", "one_in_flight")),
        ):
            value = getattr(transport, field)
            if value not in allowed:
                raise ValueError(
                    f"case: transport.{field} must be {' or '.join(map(str, allowed))}, "
                    f"got {value!r}"
                )

    @cached_property
    def stages(self) -> tuple[BoundStage, ...]:
        """Stages of all replicas on their devices."""
        return bound_stages(self.topology, self.plan)

    @property
    def used_domains(self) -> tuple[int, ...]:
        """Positions of the domains that hold layers, in the order of the topology."""
        return tuple(sorted({one.stage.domain for one in self.stages}))

    @property
    def gpus_per_domain(self) -> int:
        """NPUs of a domain: 1, or the GPUs in use where most are, but no fewer than 2.

        A dimension of one NPU is none. What a domain has beyond its GPUs in use stands idle.
        """
        if self.granularity == "domain":
            return 1
        in_use = (
            one.domain.num_gpus if one.parallelism is None else one.parallelism.num_gpus
            for one in self.stages
        )
        return max(2, *in_use)

    @property
    def num_npus(self) -> int:
        """NPUs of all domains together, those without work included."""
        return self.gpus_per_domain * self.topology.num_domains

    @property
    def num_endpoint_pairs(self) -> int:
        """NPUs of a domain over which every message between domains is split evenly.

        As many as the smallest device has, so that it is one number for all messages: where
        messages do not see each other, each pair gets that part of the bandwidth of a link.
        """
        if self.granularity == "domain":
            return 1
        return min(one.num_gpus for one in self.stages)

    @property
    def peak_flops_per_s(self) -> float:
        """Speed that traces count operations by: that of the first NPU in use. [FLOP/s]

        It is kept within bounds in which every duration is a whole number of operations. Slower
        and faster NPUs have the same peak and more or fewer operations.
        """
        first = min(self.stages, key=lambda one: one.stage.domain)
        rate = compute_rate_flops_per_s(first.domain, NO_CORRECTIONS, first.parallelism)
        if self.granularity == "gpu":
            rate /= first.num_gpus
        return min(max(rate, LEAST_PEAK_FLOPS_PER_S), MOST_PEAK_FLOPS_PER_S)


def _check_gpus(domain: str, parallelism: Parallelism) -> None:
    """Refuse messages between GPUs within a pass, apart from sums over tensor groups."""
    if parallelism.shards("gradients"):
        raise ValueError(
            f"case: parallelism.sharding of domain {domain} must be none or optimiser "
            "at granularity gpu, where passes hold no sums of their own; "
            f"got {parallelism.sharding}"
        )
    for field in ("context", "expert"):
        if getattr(parallelism, field) > 1:
            raise ValueError(
                f"case: parallelism.{field} of domain {domain} must be 1 at granularity gpu, where "
                f"passes hold no exchanges of tokens; got {getattr(parallelism, field)}"
            )


def computing_times_s(
    case: PlacementCase, corrections: Corrections = NO_CORRECTIONS
) -> list[dict[Pass, float]]:
    """Time that an NPU computes in each pass of each stage for one microbatch. [s]

    At granularity ``domain`` it includes what the GPUs of the domain tell each other.
    """
    return stage_times_s(
        case.workload, case.stages, corrections, with_exchanges=case.granularity != "gpu"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Measurement of a case by both simulators.

    Parameters
    ----------
    makespan_s
        Time until the last NPU has finished. [s]
    communication_bytes
        Sent from one domain to another, hop by hop. [bytes]
    exposed_s
        Of each domain of the topology, time until the end of its last pass, message or exchange, a
        send ending when it is delivered, less the time it computed; 0 for domains without layers.
        At granularity ``gpu`` that of a device is that of its GPU that finishes last, and that of a
        domain the mean over its devices. [s]
    """

    makespan_s: float
    communication_bytes: float
    exposed_s: tuple[float, ...]

    def __post_init__(self) -> None:
        require_non_negative("measurement", "makespan_s", self.makespan_s)
        require_non_negative("measurement", "communication_bytes", self.communication_bytes)
        for domain, exposed_s in enumerate(self.exposed_s):
            if not -math.inf < exposed_s < math.inf:  # NaN fails too
                raise ValueError(
                    f"measurement: exposed_s of domain {domain} must be finite, got {exposed_s!r}"
                )
