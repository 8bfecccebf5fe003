"""Times beyond 2**53 ns: the original keeps some of them as doubles, and its collectives stall.

Computations alone are equal there as long as doubles hold their times; anything else is refused.
"""

from collections.abc import Sequence

from astra_sim.core.events import EventQueue
from astra_sim.files.errors import AbortError
from astra_sim.files.execution_trace import NodeType
from astra_sim.workload.rank import UINT64, Rank

LAST_EXACT_NS = 2**53

_ALONE = (NodeType.COMP, NodeType.INVALID)
"""Types of nodes that involve no message, collective or memory."""


def run_late(queue: EventQueue, ranks: Sequence[Rank], *, replays: bool) -> None:
    """Run the events that are left after 2**53 ns, tick by tick.

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
