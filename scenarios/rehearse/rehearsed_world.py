"""World of a rehearsal: times and bytes scaled, links as slow as one machine emulates them."""

from dataclasses import dataclass, replace

from agents.decision.bound_plan import BoundPlan
from des import NO_CORRECTIONS, IterationResult, Topology
from des.base.checks import require_positive
from des.engine.iteration import run_alone
from des.program.program import Program
from des.world.hosts import hosts_named
from des.world.runtime import Receives, RuntimeConnections
from scenarios.iteration.reference_launch import runtime_program

_BITS_PER_GBIT = 1e9


@dataclass(frozen=True, kw_only=True)
class RehearsedWorld:
    """A plan as it is rehearsed: all times are ``scale`` times those of the plan.

    Attributes
    ----------
    link_gbit
        Rate of the fastest link; others are slowed down alike, and so are bytes. [Gbit/s]
    num_connections
        Connections of each pair of ranks; of one, notices share it with data.
    hosts
        TCP of the hosts, a name of `des.world.hosts`.
    """

    bound: BoundPlan
    receives: Receives
    num_connections: int
    hosts: str
    scale: float
    link_gbit: float

    def __post_init__(self) -> None:
        require_positive("rehearse", "scale", self.scale)
        require_positive("rehearse", "link_gbit", self.link_gbit)
        if self.bound.plan.synchronisation.overlap_steps and self.bound.plan.replicas:
            raise ValueError(
                "rehearse: the plan must exchange within a step; got Streaming DiLoCo, whose "
                "fragments are on their way during later steps"
            )

    @property
    def link_factor(self) -> float:
        """Factor on the bandwidths of all links; 1 where none is faster than may be."""
        rates = [link.bandwidth_bytes_per_s for link in self.bound.topology.links]
        return min(1.0, self.link_gbit * _BITS_PER_GBIT / 8.0 / max(rates, default=1.0))

    @property
    def byte_scale(self) -> float:
        """Factor on bytes, by which they take ``scale`` times their time on the slowed links."""
        return self.scale * self.link_factor

    @property
    def topology(self) -> Topology:
        """The world with its links slowed down and its latencies scaled."""
        own = self.bound.topology
        links = tuple(
            replace(
                link,
                bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * self.link_factor,
                latency_s=link.latency_s * self.scale,
            )
            for link in own.links
        )
        transport = replace(own.transport, hosts=hosts_named(self.hosts))
        return replace(own, links=links, transport=transport)

    def predicted(self) -> IterationResult:
        """Simulate the step that is rehearsed, the one that exchanges."""
        connections: RuntimeConnections = "shared" if self.num_connections == 1 else "split"
        program = runtime_program(self.bound, self.receives, connections)
        return run_alone(self.topology, self._scale(program), NO_CORRECTIONS).result()

    def _scale(self, program: Program) -> Program:
        """Scale passes, sums, messages and the update; notices are as long as they are.

        The order of passes is that of the plan, whose schedule may depend on its times.
        """
        scale = self.scale
        return replace(
            program,
            stages=tuple(
                one._replace(durations_s=tuple(scale * each for each in one.durations_s))
                for one in program.stages
            ),
            flows=tuple(
                flow._replace(
                    num_bytes=flow.num_bytes * (1.0 if flow.kind == "N" else self.byte_scale),
                    transfer_s=flow.transfer_s * scale,
                    latency_s=flow.latency_s * scale,
                )
                for flow in program.flows
            ),
            members=tuple(one._replace(reduce_s=one.reduce_s * scale) for one in program.members),
            update_s=program.update_s * scale,
        )
