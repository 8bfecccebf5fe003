"""All that a scheduler decides: where layers run, how GPUs share them, and in which order."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, get_args

from des.base.arithmetic import even_share
from des.base.checks import require_one_of
from des.job.workload import Workload
from des.plan.decoupled import check_learners
from des.plan.gradient_exchange import DEFAULT_EXCHANGE, GradientExchange
from des.plan.parallelism import UNSHARED, Parallelism
from des.plan.placement import Placement, Stage
from des.plan.shares import check_shares
from des.plan.sharing_checks import check_sharing
from des.plan.synchronisation import EVERY_STEP, Synchronisation, agree_every_step
from des.schedules import DEFAULT_SCHEDULE, is_static, schedule_named
from des.world.topology import Topology

Sends = Literal["overlapped", "blocking"]
"""Whether a worker goes on while what it has sent is under way, or does nothing until it arrives.
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a scheduler decides.

    Parameters
    ----------
    placement
        Domain of every layer.
    schedule
        Name of the pipeline schedule, see `des.schedules`.
    parallelism
        One entry per domain of the topology. Without any, a domain's GPUs work as a single device
        that loses nothing to sharing: ``attainable_fraction`` then covers tensor parallelism.
    replicas
        Placements of further pipelines that train the same model on their share of the microbatches
        (data parallelism across domains). No domain may serve two pipelines, unless they share.
    shares
        Microbatches of each replica, that of ``placement`` first; empty: as even as can be.
    shares_domains
        Whether pipelines may share domains and devices, which then hold the layers of each; they
        do what can start first. Every second pipeline through a domain passes its devices from the
        last to the first. Two that run towards each other are a bidirectional schedule.
    synchronisation
        Synchronisation of the replicas, see `des.plan.synchronisation`.
    exchange
        Exchange of gradients.
    activation_compression
        Factor by which messages between domains shrink, activations and their gradients alike. The
        work of compressing is not counted.
    sends
        Habit of the trainer: ``blocking`` holds a worker up until what it has sent over a link or
        inside a domain has arrived, as `Transport.endpoints` does for every job of a world.
    """

    placement: Placement
    schedule: str = DEFAULT_SCHEDULE
    parallelism: tuple[Parallelism, ...] = ()
    replicas: tuple[Placement, ...] = ()
    shares: tuple[int, ...] = ()
    shares_domains: bool = False
    synchronisation: Synchronisation = EVERY_STEP
    exchange: GradientExchange = DEFAULT_EXCHANGE
    activation_compression: float = 1.0
    sends: Sends = "overlapped"

    def __post_init__(self) -> None:
        schedule_named(self.schedule)
        for field, kind in (("parallelism", Parallelism), ("replicas", Placement)):
            value = getattr(self, field)
            if not isinstance(value, tuple) or not all(isinstance(one, kind) for one in value):
                raise ValueError(f"plan: {field} must be a tuple of {kind.__name__}, got {value!r}")
        if not (
            isinstance(self.activation_compression, int | float)
            and 1.0 <= self.activation_compression < float("inf")
        ):
            raise ValueError(
                "plan: activation_compression must be at least 1 and finite, "
                f"got {self.activation_compression!r}"
            )
        require_one_of("plan", "sends", self.sends, get_args(Sends))
        check_shares(self.shares, 1 + len(self.replicas))
        if self.exchange.tree and len(self.exchange.tree) != len(self.replicas):
            raise ValueError(
                f"plan: tree of the exchange must name one replica for each of "
                f"{len(self.replicas)} further ones, or none; got {self.exchange.tree}"
            )
        self._check_sharded()
        self._check_sharing()
        check_learners(self.synchronisation, 1 + len(self.replicas), self.shares_domains)

    def _check_sharded(self) -> None:
        """Refuse an optimiser sharded over replicas that there are not, or that it parts."""
        if not self.exchange.sharded:
            return
        if not self.replicas:
            raise ValueError(
                "plan: exchange must not be sharded where replicas are none, as there is nothing "
                "to share the optimiser's state with; got sharded=True and one copy"
            )
        mode = self.synchronisation
        if not agree_every_step(mode):
            raise ValueError(
                "plan: exchange must not be sharded unless replicas synchronise after every step "
                "and wait for it, as each updates its part with the sum; got sharded=True, "
                f"steps_between={mode.steps_between} and overlap_steps={mode.overlap_steps}"
            )

    def _check_sharing(self) -> None:
        """Refuse pipelines that share a domain though they may not, or do not know of each other.

        A schedule that looks at one pipeline's times does not see what the others do.
        """
        if not isinstance(self.shares_domains, bool):
            raise ValueError(
                f"plan: shares_domains must be True or False, got {self.shares_domains!r}"
            )
        used: set[int] = set()
        for placement in self.placements:
            shared = used & set(placement.domain_of_layer)
            if shared and not self.shares_domains:
                raise ValueError(
                    f"plan: a domain must serve one replica, got domain {min(shared)} in two, "
                    "which shares_domains allows"
                )
            if shared and not is_static(self.schedule):
                raise ValueError(
                    "plan: schedule must be one that counts alone decide where pipelines share a "
                    f"domain, such as 1f1b; got {self.schedule!r} and domain {min(shared)} in two"
                )
            used |= set(placement.domain_of_layer)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Placements of all replicas."""
        return (self.placement, *self.replicas)

    @property
    def optimiser_shards(self) -> int:
        """Replicas that share one optimiser state; 1 where each has a whole one."""
        return 1 + len(self.replicas) if self.exchange.sharded else 1

    @cached_property
    def replica_sizes(self) -> tuple[int, ...]:
        """Number of stages of each replica."""
        return tuple(map(len, self.stages_of_replicas))

    @cached_property
    def stages_of_replicas(self) -> tuple[tuple[Stage, ...], ...]:
        """Stages of each replica, numbered from 0 in each."""
        own = tuple(replica_stages(one, self.parallelism) for one in self.placements)
        if not self.shares_domains or not self.parallelism:
            return own
        times_used: Counter[int] = Counter()
        found = []
        for stages in own:
            found.append(
                tuple(self._turned(one) if times_used[one.domain] % 2 else one for one in stages)
            )
            times_used.update({one.domain for one in stages})
        return tuple(found)

    def _turned(self, stage: Stage) -> Stage:
        """The stage on the device as far from the other end of its domain."""
        last = self.parallelism[stage.domain].pipeline - 1
        return replace(stage, device=last - stage.device)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Stages of all replicas, numbered one after another."""
        if not self.replicas:
            return replica_stages(self.placement, self.parallelism)
        stages: list[Stage] = []
        for own in self.stages_of_replicas:
            for stage in own:
                stages.append(replace(stage, index=len(stages)))
        return tuple(stages)

    def check_against(self, topology: Topology, workload: Workload) -> None:
        """Refuse a plan that does not match the topology or the workload.

        The parallelism of domains that hold no layers says nothing, so it is not checked.

        Raises
        ------
        ValueError
            Naming what is allowed and what came.
        """
        placements = self.placements
        for placement in placements:
            placement.check_against(topology, workload)
        if len(placements) > workload.num_microbatches:
            raise ValueError(
                f"plan: there must be at most one replica per microbatch, "
                f"{workload.num_microbatches}; got {len(placements)}"
            )
        if self.shares and sum(self.shares) != workload.num_microbatches:
            raise ValueError(
                f"plan: shares must add up to the {workload.num_microbatches} microbatches of an "
                f"iteration, got {sum(self.shares)}"
            )
        if self.parallelism and len(self.parallelism) != topology.num_domains:
            raise ValueError(
                f"plan: parallelism must hold one entry for each of {topology.num_domains} "
                f"domains, got {len(self.parallelism)}"
            )
        in_use = {domain for placement in placements for domain in placement.domain_of_layer}
        for index in sorted(in_use) if self.parallelism else ():
            domain = topology.domains[index]
            owner = f"plan: parallelism of domain {domain.name}"
            check_sharing(owner, self.parallelism[index], domain, workload)

    def parallelism_of(self, domain: int) -> Parallelism | None:
        """Division of the work among a domain's GPUs; None where they work as one device.

        Where replicas share the optimiser's state, so do the copies within each of them.
        """
        if not self.parallelism:
            return None
        own = self.parallelism[domain]
        if self.exchange.sharded and not own.shards("optimiser"):
            return replace(own, sharding="optimiser")
        return own

    def holds_senders_up(self, topology: Topology) -> bool:
        """Whether workers wait for what they have sent to arrive: their habit or the world's."""
        return self.sends == "blocking" or topology.transport.endpoints == "blocking"

    def microbatches_of_replicas(self, num_microbatches: int) -> tuple[int, ...]:
        """Share of each replica: as given, else even, where the first ones take the remainder."""
        return self.shares or split_evenly(num_microbatches, len(self.placements))


def split_evenly(total: int, parts: int) -> tuple[int, ...]:
    """Split a count into parts that differ by at most 1, the larger ones first.

    Examples
    --------
    >>> split_evenly(8, 3)
    (3, 3, 2)
    """
    return tuple(even_share(total, parts, part) for part in range(parts))


@lru_cache(maxsize=4096)
def replica_stages(placement: Placement, parallelism: tuple[Parallelism, ...]) -> tuple[Stage, ...]:
    """Stages of one pipeline, from the input to the output, a device or a chunk of one each.

    Raises
    ------
    ValueError
        If a domain has more chunks in a row than layers, or another number of them than the
        placement has stages there.
    """
    if not parallelism and not placement.stage_layers:
        return placement.stages
    stages: list[Stage] = []
    explicit = placement.stage_layers or ((),) * len(placement.stages)
    for run, given in zip(placement.stages, explicit, strict=True):
        shared = parallelism[run.domain] if parallelism else UNSHARED
        devices = shared.device_of_chunk
        if given and len(given) != len(devices):
            raise ValueError(
                f"plan: stage_layers of domain {run.domain} must be of {len(devices)} stages, as "
                f"its pipeline has; got {len(given)}"
            )
        if len(devices) > run.num_layers:
            chunks = f" devices of {shared.chunks} chunks" if shared.chunks > 1 else ""
            raise ValueError(
                f"plan: pipeline of domain {run.domain} must be at most the {run.num_layers} "
                f"layers in a row that it holds, got {shared.pipeline}{chunks}"
            )
        first_layer = run.first_layer
        for device, num_layers in zip(
            devices, given or split_evenly(run.num_layers, len(devices)), strict=True
        ):
            stages.append(
                replace(
                    run,
                    index=len(stages),
                    device=device,
                    first_layer=first_layer,
                    num_layers=num_layers,
                )
            )
            first_layer += num_layers
    return tuple(stages)
