"""The state of a run: queues, NPUs and ranks put together."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from astra_sim.base.lazy import lazy
from astra_sim.base.values import dataclass
from astra_sim.core.events import EventQueue, Log, Timers
from astra_sim.core.result import RankResult, RunResult
from astra_sim.files.errors import AbortError, AstraSimUsageError
from astra_sim.files.execution_trace import NodeType, Trace, TraceNode
from astra_sim.files.memory_config import MemoryConfig
from astra_sim.files.network_config import NetworkConfig
from astra_sim.files.system_config import SystemConfig
from astra_sim.network import Backend, make_network
from astra_sim.system.collectives import Collectives
from astra_sim.system.messages import Messages, RendezvousMessages
from astra_sim.system.npu import Npu, SystemSettings
from astra_sim.system.remote_memory import RemoteMemory
from astra_sim.system.repeats import repeat_phases
from astra_sim.workload.nodes import NodeIssuer
from astra_sim.workload.rank import UINT64, Rank
from astra_sim.workload.statistics import report_finish

LAST_EXACT_NS = 2**53

_ALONE = (NodeType.COMP, NodeType.INVALID)
"""Types of nodes that involve no message, collective or memory."""


def run_late(queue: EventQueue, ranks: Sequence[Rank], *, replays: bool) -> None:
    """Run the events that are left after 2**53 ns, tick by tick.

    The original keeps some times beyond that as doubles, and its collectives stall. Computations
    alone are equal there as long as doubles hold their times; anything else is refused.

    Parameters
    ----------
    queue
        Events; all up to 2**53 ns have run.
    ranks
        All ranks, whose nodes that are not done decide what is allowed.
    replays
        Whether nodes of every type last as long as recorded, and nothing else happens.

    Raises
    ------
    AbortError
        If a message, collective or memory access is not done yet, or a double cannot hold a time.
    """
    if queue.next_ns is not None and not replays:
        for rank in ranks:
            _refuse_others(rank, queue.next_ns)
    while (time_ns := queue.next_ns) is not None:
        if time_ns >= UINT64 or int(float(time_ns)) != time_ns:
            raise AbortError(
                f"time: beyond {LAST_EXACT_NS} ns must be a double below {UINT64}, got {time_ns}"
            )
        queue.run(time_ns)


def _refuse_others(rank: Rank, time_ns: int) -> None:
    if rank.finished:
        return
    done = {span.node.id for span in rank.spans}
    for node in rank.trace.nodes:
        if node.id not in done and node.type not in _ALONE:
            raise AbortError(
                f"rank {rank.rank}, node {node.id} {node.name!r}: must be done "
                f"by {LAST_EXACT_NS} ns, beyond which the original keeps times as doubles and "
                f"stalls; got an event at {time_ns} ns"
            )


if TYPE_CHECKING:
    from astra_sim.run import diagnosis, waiting
else:
    diagnosis = lazy("astra_sim.run.diagnosis")
    waiting = lazy("astra_sim.run.waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Settings that the command takes as flags; ``multi_dimensional`` is an extension."""

    num_queues_per_dimension: int = 1
    injection_scale: float = 1.0
    rendezvous: bool = False
    multi_dimensional: bool = False

    def __post_init__(self) -> None:
        if self.num_queues_per_dimension < 1:
            raise AstraSimUsageError(
                f"num_queues_per_dimension: must be at least 1, got {self.num_queues_per_dimension}"
            )


class RankSimulation:
    """State of a run, readable after its end."""

    def __init__(
        self,
        traces: Sequence[Trace],
        system: SystemConfig,
        network: NetworkConfig,
        *,
        memory: MemoryConfig,
        groups: Mapping[int, tuple[int, ...]],
        backend: Backend,
        options: RunOptions,
        log: Log,
    ) -> None:
        if len(traces) != network.num_npus:
            raise AbortError(
                f"traces: must be one for each of the network's {network.num_npus} NPUs, "
                f"got {len(traces)}"
            )
        system.check_dimensions(len(network.dimensions))
        self.system = system
        self.network = network
        self.groups = groups
        self.queue = EventQueue()
        self.log = log
        self.finished: list[RankResult] = []
        kind = RendezvousMessages if options.rendezvous else Messages
        is_multi = options.multi_dimensional
        links = make_network(network, self.queue, backend=backend, multi_dimensional=is_multi)
        self.messages = kind(self.queue, links)
        settings = SystemSettings(
            config=system,
            endpoint_delay_ns=system.endpoint_delay(options.injection_scale),
            num_queues=options.num_queues_per_dimension,
        )
        npus = tuple(
            Npu(Timers(self.queue, rank, log), self.messages, settings, len(network.dimensions))
            for rank in range(network.num_npus)
        )
        repeats = None
        if system.shared_bus is None and not options.rendezvous:
            repeats = repeat_phases(
                network, self.queue, move_ns=settings.endpoint_delay_ns, last_ns=LAST_EXACT_NS
            )
        issuer = NodeIssuer(
            npus,
            system,
            Collectives(network, system, groups, repeats),
            RemoteMemory(memory, network.num_npus),
        )
        self.ranks = tuple(
            Rank(
                rank,
                trace,
                self.queue,
                communication_slots=system.communication_slots,
                issue=issuer.handlers,
                finish=self._finish,
            )
            for rank, trace in enumerate(traces)
        )

    def run(self) -> None:
        """Issue what is ready in every rank, then run until no event is left."""
        for rank in self.ranks:
            rank.issue_pass()
        self.queue.run(LAST_EXACT_NS)
        run_late(self.queue, self.ranks, replays=self.system.replay_only)

    @property
    def in_flight(self) -> list[tuple[int, list[TraceNode]]]:
        """Nodes of each rank that were issued and have not completed."""
        return [
            (rank.rank, [node for node, _, _ in rank.in_flight.values()]) for rank in self.ranks
        ]

    def result(self, lines: tuple[str, ...]) -> RunResult:
        """Result of the run."""
        return RunResult(
            ranks=tuple(self.finished),
            num_npus=len(self.ranks),
            unfinished=tuple(rank.rank for rank in self.ranks if not rank.finished),
            num_never_run=sum(len(rank.nodes) - len(rank.spans) for rank in self.ranks),
            diagnosis=self._diagnosis(),
            num_events=self.queue.num_events,
            spans=tuple(tuple(rank.spans) for rank in self.ranks),
            lines=lines,
        )

    def _diagnosis(self) -> tuple[str, ...]:
        """Causes of what never ran or was never received; nothing if all is well."""
        messages = self.messages
        if not messages.has_sends and all(rank.is_done for rank in self.ranks):
            return ()
        return diagnosis.diagnose(
            waiting.RunState(
                ranks=[waiting.state_of(rank) for rank in self.ranks],
                sends=messages.sends,
                receives=messages.receives,
                network=self.network,
                system=self.system,
                groups=self.groups,
            )
        )

    def _finish(self, rank: Rank) -> None:
        report_finish(
            rank=rank.rank,
            now_ns=self.queue.now,
            exposed_ns=rank.exposed_ns(),
            spans=rank.spans,
            system=self.system,
            log=self.log,
            finished=self.finished,
        )
