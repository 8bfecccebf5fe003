"""Spans of time in which nodes ran."""

from typing import NamedTuple

from astra_sim.files.execution_trace import TraceNode


class NodeSpan(NamedTuple):
    """A node from its issue to its completion; a tuple, as there are as many as nodes."""

    node: TraceNode
    start_ns: int
    end_ns: int
