"""Spans of time in which nodes ran."""

from astra_sim.base.values import dataclass
from astra_sim.files.execution_trace import TraceNode


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpan:
    """A node from its issue to its completion."""

    node: TraceNode
    start_ns: int
    end_ns: int
