"""Spans of time in which nodes ran."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from astra_sim.files.execution_trace import TraceNode


class NodeSpan(NamedTuple):
    """A node from its issue to its completion; a tuple, as there are as many as nodes."""

    node: TraceNode
    start_ns: int
    end_ns: int


new_span: Callable[[tuple[TraceNode, int, int]], NodeSpan] = partial(tuple.__new__, NodeSpan)
"""Make a span of its three values, quicker than a call of the class."""
